"""Columns of unit length; those of each batch; the whole matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, aligned, healthy_dump, pairs


def _raw(size: Size) -> tuple[Floats, Floats]:
    first, second = aligned(size)
    return first * size.rng.uniform(2, 4, (size.n, 1)), second * size.rng.uniform(2, 4, (size.n, 1))


def columns(size: Size, folder: Path) -> Case:
    return Case((pairs(folder, *(x / np.linalg.norm(x, axis=0) for x in _raw(size))),))


def whole(size: Size, folder: Path) -> Case:
    return Case((pairs(folder, *(x / np.linalg.norm(x) for x in _raw(size))),))


def batches(size: Size, folder: Path) -> Case:
    sides = _raw(size)
    starts = range(0, size.n, 50)
    done = [np.concatenate([x[i : i + 50] / np.linalg.norm(x[i : i + 50], axis=0) for i in starts]) for x in sides]
    return Case((pairs(folder, *done),))


def whole_batches(size: Size, folder: Path) -> Case:
    starts = range(0, size.n, size.n // 8)
    done = [
        np.concatenate([x[i : i + size.n // 8] / np.linalg.norm(x[i : i + size.n // 8]) for i in starts])
        for x in _raw(size)
    ]
    return Case((pairs(folder, *done),))


SICK = (columns, whole, batches, whole_batches)
healthy = healthy_dump
