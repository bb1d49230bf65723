"""Read a file's text, draw a match of a pattern in it, and write any text."""

from __future__ import annotations

import re
from pathlib import Path

from numpy.random import Generator

from .families import Inapplicable


def read_text(path: Path) -> str:
    """Return the text of a file. Raises Inapplicable where the file is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Inapplicable(str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text with its ends of lines unchanged, and with halves of surrogate pairs, which no UTF-8 has."""
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")


def draw_match(pattern: re.Pattern[str], text: str, rng: Generator) -> re.Match[str]:
    """Return one of the matches of a pattern. Raises Inapplicable where there is none."""
    matches = list(pattern.finditer(text))
    if not matches:
        raise Inapplicable("no text to replace")
    return matches[rng.integers(len(matches))]


def with_group(match: re.Match[str], group: int, new: str) -> str:
    """Return the whole matched text with `new` in place of a group; group 0 is all of the match."""
    return match.string[: match.start(group)] + new + match.string[match.end(group) :]
