"""Rows whose length is not 1: all rows, one side, a few."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, healthy_dump, pairs


def lengths(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first * size.rng.uniform(3, 9, (size.n, 1)), second * 5),))


def one_side(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first, second * np.sqrt(size.d)),))


def a_share(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    first[::10] *= 1.05
    return Case((pairs(folder, first, second),))


SICK = (lengths, one_side, a_share)
healthy = healthy_dump
