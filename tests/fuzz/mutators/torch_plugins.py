"""Let a text inside a torch file name a Python file beside it, which nobody may import."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import PLUGIN
from ..torch_files import read_torch, write_torch
from ..trees import slots_of


def mutate(path: Path, rng: Generator) -> str:
    """Replace one text by the name, and return which text."""
    content = read_torch(path)
    top = [(content, key) for key in content if isinstance(content[key], str)] if isinstance(content, dict) else []
    slots = top if top and rng.random() < 0.7 else [p for p in slots_of(content) if isinstance(p[0][p[1]], str)]
    if not slots:
        raise Inapplicable("no texts")
    container, key = slots[rng.integers(len(slots))]
    container[key] = PLUGIN
    write_torch(path, content)
    return f"{str(key)[:60]} is {PLUGIN}"
