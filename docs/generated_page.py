"""Write a generated page of docs/, compare it with its file, and escape text for Markdown."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def write_or_compare(page: Path, text: str, arguments: list[str]) -> int:
    """Write the page and return 0; with `--check` write nothing, print a diff and return 1 if the page differs.

    Args:
        page: the file.
        text: the expected text of the file.
        arguments: words of the command line.
    """
    if "--check" not in arguments:
        page.write_text(text, encoding="utf-8")
        return 0
    old = page.read_text(encoding="utf-8") if page.is_file() else ""
    labels = (f"{page.name} as it is", f"{page.name} as it would be written")
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), *labels))
    return int(old != text)


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Args:
        header: names of the columns.
        lines: rows of cells, a cell for each column.
    """
    rows = (header, ("---",) * len(header), *lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def escape(text: str) -> str:
    """Escape formulas in plain text, so Markdown shows them unchanged. Code between backticks stays."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"\*|(?<!\w)_|_(?!\w)|<(?=\w)|(?<=\])\(", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)
