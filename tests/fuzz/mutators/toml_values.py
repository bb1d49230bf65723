"""Put another literal in the place of one value of a TOML file, or inside a list or a text of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_text, draw_toml
from .json_values import read_text

_VALUE = re.compile(r"^(\s*[\w.\"-]+\s*=\s*)(.+)$", re.MULTILINE)


def mutate(path: Path, rng: Generator) -> str:
    """Edit the value and return what stands there."""
    text = read_text(path)
    matches = list(_VALUE.finditer(text))
    if not matches:
        raise Inapplicable("no values")
    match = matches[rng.integers(len(matches))]
    own = match[2]
    literal = draw_toml(rng) if rng.random() < 0.7 else json.dumps(draw_text(rng))
    new = [literal, literal, f"[{own}, {literal}]", f"{{a = {literal}}}", f"[{literal}]"][rng.integers(5)]
    start, end = match.span(2)
    path.write_text(text[:start] + new + text[end:], encoding="utf-8", errors="surrogatepass")
    return f"{match[1].strip()} {new[:60]}"
