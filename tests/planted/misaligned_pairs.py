"""The rows of both sides in other orders: shifted, shuffled, sorted by id as text, captions interleaved."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump, healthy_dump, pairs


def shifted(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first, np.roll(second, 1, 0)),))


def far(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first, np.roll(second, -37, 0)),))


def shuffled(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first, second[size.rng.permutation(size.n)]),))


def by_id(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    ids = np.array([str(i) for i in range(size.n)])
    order = np.argsort(ids, kind="stable")
    return Case((pairs(folder, first, second[order], image_id=ids),))


def interleaved(size: Size, folder: Path) -> Case:
    images, _ = aligned(Size(size.n // 3, size.d, size.batch, size.seed), noise=0.0)
    captions = np.concatenate([_near(images, size, k) for k in range(3)])  # caption 0 of all images, then caption 1
    return Case((dump(folder, images=images, captions=captions),))


def _near(images: np.ndarray, size: Size, k: int) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(k)
    near = images + 0.5 / np.sqrt(size.d) * rng.normal(size=images.shape)
    return near / np.linalg.norm(near, axis=1, keepdims=True)


def with_objective(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    path = pairs(folder, first, second[size.rng.permutation(size.n)])
    return Case((path,), {"objective": "ntxent:tau=0.07", "batch_size": size.batch})


def shuffled_and_large(size: Size, folder: Path) -> Case:
    """So many rows that a sample of one side misses the partners of the other sample."""
    large = Size(200_000, 32, size.batch, size.seed)
    first, second = aligned(large, decay=0.0)
    return Case((pairs(folder, first, second[large.rng.permutation(large.n)]),))


SICK = (shifted, far, shuffled, by_id, interleaved, shuffled_and_large, with_objective)
healthy = healthy_dump
