"""Positives that stand in an earlier row with other punctuation, a title or an article more."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, copy: str) -> Case:
    path = folder / name
    rows = []
    for i in range(200):
        words = [f"word{chr(97 + (i + k) % 26)}{(i + 3) * k % 211}" for k in range(1, 30)]
        earlier = rows[i - 1]["positive"] if i else ""
        first, _, rest = earlier.partition(" ")
        rows.append({
            "query": f"what is question {i}",
            "positive": copy.format(text=earlier, first=first, rest=rest) if i % 10 == 9 else " ".join(words),
        })  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def full_stop(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "{text}.")


def title(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "The handbook of everything: {text}")


def article(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "{first} the {rest}")


SICK = (full_stop, title, article)


def healthy(size: Size, folder: Path) -> Case:
    """Copies with another number, as instances of a template have."""
    return _rows(folder, "healthy.jsonl", "{first} 5 {rest}")
