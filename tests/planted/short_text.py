"""Negatives that are characters, ids in place of passages, and positives that were cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .base import Case, Size


def _rows(folder: Path, name: str, every: int, **changed: Any) -> Case:
    path = folder / name
    rows = [
        {
            "query": f"what is question {i}",
            "positives": [f"answer {i} stands in this passage of some words"],
            "negatives": [f"another passage of as many words is number {i}"],
        }
        | (changed if i % every == 0 else {})
        for i in range(200)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def characters(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 1, negatives=["a", "7", "걳", "."])


def share(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 10, negatives=["a passage of as many words as others", "w"])


def cut(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 4, positives=list("answer"))


def ids(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", 1, negatives=["d1", "d7"])


SICK = (characters, share, cut, ids)


def healthy(size: Size, folder: Path) -> Case:
    """Labels of one character, beside labels of one character."""
    return _rows(folder, "healthy.jsonl", 1, negatives=["8", "9"], positives=["7"])
