"""All items in a few dimensions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, healthy_dump, pairs, unit


def _flat(size: Size, rank: int, folder: Path) -> Case:
    rng = size.rng
    plane = np.linalg.qr(rng.normal(size=(size.d, rank)))[0].T
    latent = rng.normal(size=(size.n, rank))
    sides = [latent + 0.03 * rng.normal(size=latent.shape) for _ in range(2)]
    return Case((pairs(folder, *(unit(x @ plane + 1e-4 * rng.normal(size=(size.n, size.d))) for x in sides)),))


def few(size: Size, folder: Path) -> Case:
    return _flat(size, max(2, size.d // 32), folder)


def two(size: Size, folder: Path) -> Case:
    return _flat(size, 2, folder)


SICK = (few, two)
healthy = healthy_dump
