"""Negatives that another row has as an answer to the same question."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, **changed: str) -> Case:
    path, rows = folder / name, []
    for i in range(100):
        row = {"query": f"question {i}", "positive": f"answer {i}", "negative": f"answer {(i + 1) % 100}"}
        rows.append(row | {key: value.format(i=i, before=i - 1) for key, value in changed.items() if i % 10 == 5})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def marks(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", query="Question {before}?", negative="answer {before}")


def reversed_pairs(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", query="answer {before}", negative="question {before}")


SICK = (marks, reversed_pairs)


def healthy(size: Size, folder: Path) -> Case:
    """Every negative is a positive of another query: the pool of answers is the corpus."""
    return _rows(folder, "healthy.jsonl")
