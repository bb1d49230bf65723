"""Recipes as TOML files: those of runs, those that users write, and the papers' by name."""

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
    """Write every choice as TOML; fields that are None are left out."""
    values = {k: v for k, v in dataclasses.asdict(recipe).items() if v is not None}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    header = "# How this run is trained; `lossscope train --resume` resumes it."
    write_text(path, "\n".join([header, *lines]) + "\n")


def read_recipe(path: Path) -> Recipe:
    """Read a TOML file. Raises InputError where there is none, or it is not TOML, or has other keys or types."""
    values = read_toml(path)
    with naming(path, "a recipe whose choices fit"):
        return Recipe(**checked_choices(values, str(path)))


def checked_choices(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return some choices of a recipe as TOML gives them, each of the right type; `where` is what messages name.

    Raises InputError for a key that is no choice, and a value of another type.
    """
    return decode_some(Recipe, with_todays_names(values), where)


def with_todays_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices under the names that they have now; a file that has both keeps both, for its reader to refuse."""
    renamed = {old: new for old, new in RENAMED.items() if new not in values}
    return {renamed.get(name, name): value for name, value in values.items()}


def printed_choices(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return every choice of a stored recipe but its seed as it is printed: specs without what is default.

    A spec that names a Python file stays as it is, since nothing is imported for a name; the file of an objective's net
    is left out, as it is another one for every seed. Keys that are no choices of a recipe are left out.
    """
    stored = with_todays_names(recipe)
    names = [item.name for item in dataclasses.fields(Recipe) if item.name != "seed"]
    return {name: _choice_text(name, stored[name]) for name in names if name in stored}


def presets() -> dict[str, str]:
    """Return the papers' recipes: name -> the first comment line of the file, what it is and of which paper."""
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
