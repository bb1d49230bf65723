"""Negatives that are positives of other queries."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, share: int) -> Case:
    path = folder / name
    rows = [
        {
            "query": f"question {i}",
            "positive": f"answer {i}",
            "negative": f"answer {i + 1}" if i < share else f"other {i}",
        }
        for i in range(100)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def half(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 50)


SICK = (half,)


def healthy(size: Size, folder: Path) -> Case:
    """Negatives that are no positives."""
    return _rows(folder, "healthy.jsonl", 0)
