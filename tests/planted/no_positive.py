"""Rows without a positive."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, without: int) -> Case:
    path = folder / name
    rows = [{"query": f"question {i}", "positives": [] if i < without else [f"answer {i}"]} for i in range(100)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def some(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 5)


SICK = (some,)


def healthy(size: Size, folder: Path) -> Case:
    """Rows that all have a positive."""
    return _rows(folder, "healthy.jsonl", 0)
