"""Give one key of a JSON file twice, an odd name, or the value of its neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_json, draw_text
from ..texts import read_text, write_text
from ..trees import slots_of


def mutate(path: Path, rng: Generator) -> str:
    """Edit the keys and return what was edited."""
    try:
        tree = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise Inapplicable("no JSON") from error
    slots = [slot for slot in slots_of(tree) if isinstance(slot[0], dict)]
    if not slots:
        raise Inapplicable("no keys")
    container, key = slots[rng.integers(len(slots))]
    action = ("double", "odd name", "swap")[rng.integers(3)]
    if action == "swap":
        _swap(container, key, rng)
        text = json.dumps(tree, indent=1)
    else:
        value = container.pop(key)
        name = draw_text(rng) if action == "odd name" else key
        entry = f"{json.dumps(name)}: {json.dumps(value)}"
        container["@double@"] = 0
        other = f", {json.dumps(key)}: {draw_json(rng)}" if action == "double" else ""
        text = json.dumps(tree, indent=1).replace('"@double@": 0', entry + other)
    write_text(path, text)
    return f"{action} {str(key)[:40]!r}"


def _swap(container: dict[str, Any], key: str, rng: Generator) -> None:
    other = list(container)[rng.integers(len(container))]
    container[key], container[other] = container[other], container[key]
