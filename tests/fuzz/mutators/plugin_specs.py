"""Let a text of a JSON or TOML file name a Python file beside it, which nobody may import."""

from __future__ import annotations

import re
from pathlib import Path

from numpy.random import Generator

from ..odd_values import PLUGIN
from ..texts import draw_match, read_text, with_group, write_text

_VALUE = re.compile(r'(?<=[:=\[,] )"(?:[^"\\\n]|\\.)*"(?!\s*[:=])|(?<=\[)"(?:[^"\\\n]|\\.)*"')


def mutate(path: Path, rng: Generator) -> str:
    """Replace one text by the name, and return which text."""
    match = draw_match(_VALUE, read_text(path), rng)
    write_text(path, with_group(match, 0, f'"{PLUGIN}"'))
    return f"{match[0][:60]} is {PLUGIN}"
