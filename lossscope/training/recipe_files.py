"""Read and write recipes as TOML files: of runs, of users, and the papers' recipes by name."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossscope.errors import SpecError
from lossscope.io.decode import decode_some, read_toml
from lossscope.io.files import write_text
from lossscope.io.reading import naming
from lossscope.registry import build, short_spec, uses_file
from lossscope.spec import Spec

from .recipe import RENAMED, Recipe

_PRESETS = Path(__file__).parent / "presets"


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write all choices as TOML, without fields that are None."""
    values = {k: v for k, v in dataclasses.asdict(recipe).items() if v is not None}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    header = "# How this run is trained; `lossscope train --resume` resumes it."
    write_text(path, "\n".join([header, *lines]) + "\n")


def read_recipe(path: Path) -> Recipe:
    """Read a TOML file. Raises InputError if it is missing, is not TOML, or has other keys or types."""
    values = read_toml(path)
    with naming(path, "a recipe whose choices fit"):
        return Recipe(**check_choices(values, str(path)))


def check_choices(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return choices of a recipe from TOML values, each of the right type; messages name `where`.

    Raises InputError for a key that is no choice, and for a value of another type.
    """
    return decode_some(Recipe, with_todays_names(values), where)


def with_todays_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices under today's names. If a file has both names, both stay, and its reader refuses them."""
    renamed = {old: new for old, new in RENAMED.items() if new not in values}
    return {renamed.get(name, name): value for name, value in values.items()}


def printed_choices(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return all choices of a stored recipe but its seed, as tables print them: specs without defaults.

    A spec that names a Python file stays whole, since a name is no reason to import it. The file of an objective's net
    is left out, as each seed has another. Keys that are no choices of a recipe are left out.
    """
    stored = with_todays_names(recipe)
    names = [item.name for item in dataclasses.fields(Recipe) if item.name != "seed"]
    return {name: _choice_text(name, stored[name]) for name in names if name in stored}


def presets() -> dict[str, str]:
    """Return the papers' recipes: name -> the first comment line of the file, which names the paper."""
    return {path.stem: _first_comment(path) for path in sorted(_PRESETS.glob("*.toml"))}


def preset_path(name: str) -> Path:
    """Return the file of a preset; `-` and `_` are equal. Raises SpecError with the nearest names."""
    wanted = name.replace("-", "_").lower()
    names = list(presets())
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise SpecError(f"preset must be one of those that `lossscope list presets` shows; got {name!r}{hint}")
    return _PRESETS / f"{wanted}.toml"


def _choice_text(name: str, value: object) -> str:
    kind = {"objective": "objectives", "encoder": "encoders", "data": "datasets"}.get(name)
    if kind is None or not value or uses_file(str(value)):
        return str(value)
    spec = Spec.parse(str(value))
    spec.values.pop("net", None)
    return short_spec(build(kind, str(spec)))


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
