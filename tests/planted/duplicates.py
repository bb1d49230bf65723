"""Copies of candidates under other ids, and rows of a file twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump, healthy_dump, pairs


def embeddings(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    distinct = max(size.batch // 2, 8)
    rows = size.rng.integers(0, distinct, size.n)
    near = first[:distinct][rows] + 0.3 / np.sqrt(size.d) * size.rng.normal(size=first.shape)
    first = near / np.linalg.norm(near, axis=1, keepdims=True)
    return Case((pairs(folder, first, second[:distinct][rows]),), {"batch_size": size.batch})


def texts(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    distinct = max(size.batch // 2, 8)
    rows = size.rng.integers(0, distinct, size.n)
    words = np.array([f"a text about thing {row}" for row in rows])
    path = dump(
        folder, queries=first, documents=second, positives=np.stack([np.arange(size.n)] * 2, 1), document_text=words
    )
    return Case((path,), {"batch_size": size.batch})


def rows(size: Size, folder: Path) -> Case:
    path = folder / "rows.jsonl"
    lines = [json.dumps({"query": f"question {i % 80}", "positive": f"answer {i % 80}"}) for i in range(100)]
    path.write_text("\n".join(lines) + "\n")
    return Case((str(path),))


SICK = (embeddings, texts, rows)
healthy = healthy_dump
