"""Let a text of a JSON or TOML file name a Python file that lies beside it: nobody may import it."""

from __future__ import annotations

import re
from pathlib import Path

from numpy.random import Generator

from ..odd_values import PLUGIN
from ..texts import draw_match, read_text, with_group, write_text

_VALUE = re.compile(r'(?<=[:=\[,] )"(?:[^"\\\n]|\\.)*"(?!\s*[:=])|(?<=\[)"(?:[^"\\\n]|\\.)*"')


def mutate(path: Path, rng: Generator) -> str:
    """Write the name in the place of one text, and return which."""
    match = draw_match(_VALUE, read_text(path), rng)
    write_text(path, with_group(match, 0, f'"{PLUGIN}"'))
    return f"{match[0][:60]} is {PLUGIN}"
