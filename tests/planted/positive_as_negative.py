"""Positives among the mined negatives: by id, by text, and in a file of rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump


def _dump(size: Size, folder: Path, negatives: object, name: str, **arrays: object) -> Case:
    first, second = aligned(size)
    positives = np.stack([np.arange(size.n)] * 2, 1)
    path = dump(folder, name, queries=first, documents=second, positives=positives, negatives=negatives, **arrays)
    return Case((path,), {"batch_size": size.batch, "objective": "ntxent:tau=0.07"})


def _others(size: Size) -> np.ndarray:  # type: ignore[type-arg]
    return (np.arange(size.n)[:, None] + size.rng.integers(1, size.n - 1, (size.n, 3))) % size.n


def by_id(size: Size, folder: Path) -> Case:
    negatives = _others(size)
    negatives[: size.n // 10, 1] = np.arange(size.n // 10)
    return _dump(size, folder, negatives, "dump.npz")


def by_text(size: Size, folder: Path) -> Case:
    negatives = _others(size)
    texts = np.array([f"text {i}" for i in range(size.n)])
    texts[1::2] = texts[::2][: len(texts[1::2])]
    negatives[::2, 0] = np.minimum(np.arange(0, size.n, 2) + 1, size.n - 1)
    return _dump(size, folder, negatives, "dump.npz", document_text=texts)


def rows(size: Size, folder: Path) -> Case:
    path = folder / "rows.jsonl"
    lines = [
        json.dumps({"query": f"question {i}", "positive": f"answer {i}", "negative": f"answer {i if i % 3 else i + 1}"})
        for i in range(120)
    ]
    path.write_text("\n".join(lines) + "\n")
    return Case((str(path),))


SICK = (by_id, by_text, rows)


def healthy(size: Size, folder: Path) -> Case:
    """Negatives of other queries."""
    return _dump(size, folder, _others(size), "healthy.npz")
