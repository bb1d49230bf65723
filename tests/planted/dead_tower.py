"""One side is constant, zero, or noise around a constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, healthy_dump, pairs, unit


def constant(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, np.repeat(first[:1], size.n, 0), second),))


def noisy(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    noise = 0.1 / np.sqrt(size.d) * size.rng.normal(size=second.shape)
    return Case((pairs(folder, first, unit(second[:1] + noise)),))


def zero(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first, second * 0),))


SICK = (constant, noisy, zero)
healthy = healthy_dump
