"""Texts of files: read, matched at a place that is drawn, and written with whatever is in them."""

from __future__ import annotations

import re
from pathlib import Path

from numpy.random import Generator

from .families import Inapplicable


def read_text(path: Path) -> str:
    """Return the text of a file. Raises Inapplicable where it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Inapplicable(str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text with its own ends of lines; halves of surrogate pairs are written too, though no UTF-8 has them."""
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")


def draw_match(pattern: re.Pattern[str], text: str, rng: Generator) -> re.Match[str]:
    """Return one of the matches of a pattern. Raises Inapplicable where there is none."""
    matches = list(pattern.finditer(text))
    if not matches:
        raise Inapplicable("nothing to put another text in the place of")
    return matches[rng.integers(len(matches))]


def with_group(match: re.Match[str], group: int, new: str) -> str:
    """Return the whole text that was matched, with `new` in the place of a group; group 0 is all of the match."""
    return match.string[: match.start(group)] + new + match.string[match.end(group) :]
