"""A recipe as a TOML file that states every choice."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.files import write_text
from lossscope.registry import build, short_spec, uses_file
from lossscope.spec import Spec

from .recipe import Recipe


def write_recipe(recipe: Recipe, path: Path) -> None:
    """As TOML; fields that are None are left out."""
    values = {k: v for k, v in dataclasses.asdict(recipe).items() if v is not None}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    write_text(
        path,
        "# How this run was trained; `lossscope train --resume` goes on from it.\n" + "\n".join(lines) + "\n",
    )


def read_recipe(path: Path) -> Recipe:
    """From TOML. Raises InputError for a file that is not there, not TOML, or has other keys or types."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a readable TOML file; {error}") from error
    return Recipe(**checked_choices(found, str(path)))


def checked_choices(found: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Choices of a recipe as TOML gives them, whole numbers of rates made floats. Raises InputError, naming `where`."""
    defaults: dict[str, Any] = {item.name: item.default for item in dataclasses.fields(Recipe)}
    typed: dict[str, Any] = {}
    for key, value in found.items():
        if key not in defaults:
            raise InputError(f"keys of {where} must be of {', '.join(defaults)}; got {key!r}")
        default = defaults[key]
        wanted = (int, float) if isinstance(default, float) else str if default is None else type(default)
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            raise InputError(f"{key} of {where} must be {type(default).__name__}; got {value!r}")
        typed[key] = float(value) if isinstance(default, float) else value
    return typed


def plain_values(recipe: Any) -> dict[str, Any]:
    """A recipe dataclass as plain values that weights_only can read."""
    return {k: str(v) if isinstance(v, Path) else v for k, v in asdict(recipe).items()}


def printed_choices(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return every choice of a stored recipe but its seed as it is printed: specs without what is default.

    A spec that names a Python file stays as it is, since nothing is imported for a name; the file of an objective's net
    is left out, as it is another one for every seed. Keys that are no choices of a recipe are left out.
    """
    names = [item.name for item in dataclasses.fields(Recipe) if item.name != "seed"]
    return {name: _printed(name, recipe[name]) for name in names if name in recipe}


def _printed(name: str, value: object) -> str:
    kind = {"objective": "objectives", "encoder": "encoders", "data": "datasets"}.get(name)
    if kind is None or not value or uses_file(str(value)):
        return str(value)
    spec = Spec.parse(str(value))
    spec.values.pop("net", None)
    return short_spec(build(kind, str(spec)))
