"""Replace, remove or double one value of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_json
from ..texts import read_text, write_text
from ..trees import edit

_MARK = "@literal@"


def mutate(path: Path, rng: Generator) -> str:
    """Edit the file and return what was edited."""
    text, what = edited_text(read_text(path), rng)
    write_text(path, text)
    return what


def edited_text(text: str, rng: Generator) -> tuple[str, str]:
    """Return JSON text with one edit, and its description; literals that no library writes go in as text."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Inapplicable("no JSON") from error
    literal = ""

    def draw(_value: Any) -> str:
        nonlocal literal
        literal = draw_json(rng)
        return _MARK

    tree, what = edit(tree, rng, draw)
    written = json.dumps(tree, indent=1)
    return written.replace(json.dumps(_MARK), literal), f"{what} {literal[:40]}"
