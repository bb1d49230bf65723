"""Edit the JSON of one line of a file of lines."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..texts import read_text, write_text
from .json_values import edited_text


def mutate(path: Path, rng: Generator) -> str:
    """Edit the line and return which."""
    lines = read_text(path).splitlines()
    if not lines:
        raise Inapplicable("no lines")
    index = int(rng.integers(len(lines)))
    text, what = edited_text(lines[index], rng)
    lines[index] = " ".join(text.splitlines())
    write_text(path, "\n".join(lines) + "\n")
    return f"line {index + 1}: {what}"
