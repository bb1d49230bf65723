"""Remove, rename or double keys and tables of a TOML file, or add one that is nobody's."""

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
    places = [place for place, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    if not places:
        raise Inapplicable("no keys")
    place, action = places[rng.integers(len(places))], _ACTIONS[rng.integers(len(_ACTIONS))]
    own, name = lines[place], json.dumps(draw_text(rng)[:1000])
    key, _, value = own.partition("=")
    replaced = {
        "remove": [], "rename": [f"{name} = {value}" if value else f"[{name}]"], "double": [own, own],
        "other table": [f"[{name}]", own], "new key": [own, f"{name} = {draw_toml(rng)}"],
        "array table": [own, f"[[{key.strip().strip('[]')}]]"], "deep key": [own, "a." * 3000 + "b = 1"],
    }[action]  # fmt: skip
    text = "\n".join([*lines[:place], *replaced, *lines[place + 1 :]]) + "\n"
    write_text(path, text)
    return f"{action} {own[:40]!r}"
