"""Rows with empty texts."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, **changed: str) -> Case:
    path = folder / name
    rows = [{"query": f"question {i}", "positive": f"answer {i}", "negative": f"other {i}"} for i in range(100)]
    rows[7] |= changed
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def query(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", query=" ")


def positive(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", positive="")


SICK = (query, positive)


def healthy(size: Size, folder: Path) -> Case:
    """Rows without an empty text."""
    return _rows(folder, "healthy.jsonl")
