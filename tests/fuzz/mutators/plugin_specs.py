"""Let a text of a JSON or TOML file name a Python file that lies beside it: nobody may import it."""

from __future__ import annotations

import re
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import PLUGIN
from .json_values import read_text

_VALUE = re.compile(r'(?<=[:=\[,] )"(?:[^"\\\n]|\\.)*"(?!\s*[:=])|(?<=\[)"(?:[^"\\\n]|\\.)*"')


def mutate(path: Path, rng: Generator) -> str:
    """Write the name in the place of one text, and return which."""
    text = read_text(path)
    places = list(_VALUE.finditer(text))
    if not places:
        raise Inapplicable("no texts")
    place = places[rng.integers(len(places))]
    path.write_text(text[: place.start()] + f'"{PLUGIN}"' + text[place.end() :], encoding="utf-8")
    return f"{place[0][:60]} is {PLUGIN}"
