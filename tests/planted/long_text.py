"""Rows with texts of 900 words."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, words: int) -> Case:
    path = folder / name
    rows = [
        {"query": f"question {i}", "positive": f"answer {i} " + "word " * (words if i < 10 else 5)} for i in range(99)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def long(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 900)


SICK = (long,)


def healthy(size: Size, folder: Path) -> Case:
    """Texts of a few words."""
    return _rows(folder, "healthy.jsonl", 5)
