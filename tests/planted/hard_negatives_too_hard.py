"""Mined negatives nearer to the query than its positive, or as near."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, aligned, dump, unit


def _dump(size: Size, folder: Path, first: Floats, second: Floats, hard: Floats, name: str) -> Case:
    positives = np.stack([np.arange(size.n)] * 2, 1)
    negatives = np.arange(size.n, 2 * size.n)[:, None]
    documents = np.concatenate([second, hard])
    path = dump(folder, name, queries=first, documents=documents, positives=positives, negatives=negatives)
    return Case((path,), {"batch_size": size.batch, "objective": "ntxent:tau=0.07"})


def nearer(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    hard = unit(first + 0.2 / np.sqrt(size.d) * size.rng.normal(size=first.shape))
    return _dump(size, folder, first, second, hard, "dump.npz")


def other_positives(size: Size, folder: Path) -> Case:
    """Negatives that are other captions of the same item: above the positive as often as below."""
    rng = size.rng
    latent = rng.normal(size=(size.n, size.d))
    queries, captions, others = (unit(latent + 0.9 * rng.normal(size=latent.shape)) for _ in range(3))
    return _dump(size, folder, queries, captions, others, "others.npz")


SICK = (nearer, other_positives)


def healthy(size: Size, folder: Path) -> Case:
    """Negatives that are near, and below the positive."""
    first, second = aligned(size)
    return _dump(size, folder, first, second, unit(0.5 * np.roll(second, 1, 0) + 0.3 * first), "healthy.npz")
