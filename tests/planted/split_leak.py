"""Held-out items in the training data, by embedding and by text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, pairs


def _dumps(size: Size, folder: Path, shared: int) -> Case:
    first, second = aligned(size)
    other, others = aligned(Size(size.n, size.d, size.batch, size.seed + 100))
    train = pairs(folder, first, second, "train.npz")
    test = pairs(
        folder, np.concatenate([other[shared:], first[:shared]]), np.concatenate([others[shared:], second[:shared]]),
        f"test{shared}.npz",
    )  # fmt: skip
    return Case((test,), {"against": train})


def embeddings(size: Size, folder: Path) -> Case:
    return _dumps(size, folder, size.n // 20)


def rows(size: Size, folder: Path) -> Case:
    for name, start in (("train", 0), ("test", 80)):
        lines = [json.dumps({"query": f"question {i}", "positive": f"answer {i}"}) for i in range(start, start + 100)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return Case((str(folder / "test.jsonl"),), {"against": str(folder / "train.jsonl")})


SICK = (embeddings, rows)


def healthy(size: Size, folder: Path) -> Case:
    """Splits that share nothing."""
    return _dumps(size, folder, 0)
