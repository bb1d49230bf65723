"""Remove, rename or double keys and tables of a TOML file, or add an unknown key."""

from __future__ import annotations

import json
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_text, draw_toml
from ..texts import read_text, write_text

_ACTIONS = ("remove", "rename", "double", "other table", "new key", "array table", "deep key")


def mutate(path: Path, rng: Generator) -> str:
    """Edit the keys and return how."""
    lines = read_text(path).splitlines()
    indices = [number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    if not indices:
        raise Inapplicable("no keys")
    index, action = indices[rng.integers(len(indices))], _ACTIONS[rng.integers(len(_ACTIONS))]
    line, name = lines[index], json.dumps(draw_text(rng)[:1000])
    key, _, value = line.partition("=")
    replaced = {
        "remove": [], "rename": [f"{name} = {value}" if value else f"[{name}]"], "double": [line, line],
        "other table": [f"[{name}]", line], "new key": [line, f"{name} = {draw_toml(rng)}"],
        "array table": [line, f"[[{key.strip().strip('[]')}]]"], "deep key": [line, "a." * 3000 + "b = 1"],
    }[action]  # fmt: skip
    text = "\n".join([*lines[:index], *replaced, *lines[index + 1 :]]) + "\n"
    write_text(path, text)
    return f"{action} {line[:40]!r}"
