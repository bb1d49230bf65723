"""Let a text inside a torch file name a Python file that lies beside it: nobody may import it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import torch
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import PLUGIN
from ..trees import places_of


def mutate(path: Path, rng: Generator) -> str:
    """Write the name in the place of one text, and return which."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise Inapplicable("no torch file") from error
    top = [(content, key) for key in content if isinstance(content[key], str)] if isinstance(content, dict) else []
    places = top if top and rng.random() < 0.7 else [p for p in places_of(content) if isinstance(p[0][p[1]], str)]
    if not places:
        raise Inapplicable("no texts")
    container, key = places[rng.integers(len(places))]
    container[key] = PLUGIN
    torch.save(content, path, _use_new_zipfile_serialization=zipfile.is_zipfile(path))
    return f"{str(key)[:60]} is {PLUGIN}"
