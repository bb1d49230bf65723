"""A few dimensions that carry nearly all variance, and tell next to nothing about the pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, pairs, unit


def few_wide_dimensions(size: Size, folder: Path) -> Case:
    """Three dimensions have 99 % of the variance."""
    first, second = aligned(size, noise=0.5, decay=0.0)
    widths = np.ones(size.d)
    few = 3
    widths[:few] = np.sqrt(99 * (size.d - few) / few)
    return Case((pairs(folder, unit(first * widths), unit(second * widths)),))


SICK = (few_wide_dimensions,)


def healthy(size: Size, folder: Path) -> Case:
    """The same vectors, equally wide."""
    return Case((pairs(folder, *aligned(size, noise=0.5, decay=0.0), name="healthy.npz"),))
