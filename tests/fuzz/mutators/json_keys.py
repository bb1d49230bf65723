"""Give one key of a JSON file twice, an odd name, or the value of its neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_json, draw_text
from ..texts import read_text, write_text
from ..trees import places_of


def mutate(path: Path, rng: Generator) -> str:
    """Edit the keys and return what was edited."""
    try:
        tree = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise Inapplicable("no JSON") from error
    places = [place for place in places_of(tree) if isinstance(place[0], dict)]
    if not places:
        raise Inapplicable("no keys")
    container, key = places[rng.integers(len(places))]
    action = ("double", "odd name", "swap")[rng.integers(3)]
    if action == "swap":
        _swap(container, key, rng)
        text = json.dumps(tree, indent=1)
    else:
        value = container.pop(key)
        name = draw_text(rng) if action == "odd name" else key
        own = f"{json.dumps(name)}: {json.dumps(value)}"
        container["@double@"] = 0
        other = f", {json.dumps(key)}: {draw_json(rng)}" if action == "double" else ""
        text = json.dumps(tree, indent=1).replace('"@double@": 0', own + other)
    write_text(path, text)
    return f"{action} {str(key)[:40]!r}"


def _swap(container: dict[str, Any], key: str, rng: Generator) -> None:
    other = list(container)[rng.integers(len(container))]
    container[key], container[other] = container[other], container[key]
