"""Replace one value of a TOML file by another literal, or put the literal into a list or a table with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from numpy.random import Generator

from ..odd_values import draw_text, draw_toml
from ..texts import draw_match, read_text, with_group, write_text

_VALUE = re.compile(r"^(\s*[\w.\"-]+\s*=\s*)(.+)$", re.MULTILINE)


def mutate(path: Path, rng: Generator) -> str:
    """Edit the value and return the new value."""
    match = draw_match(_VALUE, read_text(path), rng)
    stored = match[2]
    literal = draw_toml(rng) if rng.random() < 0.7 else json.dumps(draw_text(rng))
    new = [literal, literal, f"[{stored}, {literal}]", f"{{a = {literal}}}", f"[{literal}]"][rng.integers(5)]
    write_text(path, with_group(match, 2, new))
    return f"{match[1].strip()} {new[:60]}"
