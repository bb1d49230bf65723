"""Negatives that are near copies of the positive: a mark, a title, a word less."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Case, Size


def _rows(folder: Path, name: str, negative: str) -> Case:
    path = folder / name
    rows = []
    for i in range(200):
        words = [f"word{(i + 3) * k % 211}" for k in range(1, 30)]
        texts = {"text": " ".join(words), "most": " ".join(words[:-1]), "turned": " ".join(reversed(words))}
        rows.append({
            "query": f"what is question {i}",
            "positive": texts["text"],
            "negative": negative.format(**texts) if i % 10 == 0 else f"another passage of as many words {i}",
        })  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return Case((str(path),))


def full_stop(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "{text}.")


def title(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "The handbook of everything: {text}")


def last_word(size: Size, folder: Path) -> Case:
    return _rows(folder, "rows.jsonl", "{most}")


SICK = (full_stop, title, last_word)


def healthy(size: Size, folder: Path) -> Case:
    """Negatives of the same words in another order."""
    return _rows(folder, "healthy.jsonl", "{turned}")
