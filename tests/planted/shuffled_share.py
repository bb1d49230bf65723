"""Pairs, a share of them shuffled."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, pairs


def _shuffled(size: Size, folder: Path, share: float) -> Case:
    first, second = aligned(size)
    rows = size.rng.choice(size.n, int(share * size.n), replace=False)
    second[rows] = second[size.rng.permutation(rows)]
    return Case((pairs(folder, first, second),))


def a_fifth(size: Size, folder: Path) -> Case:
    return _shuffled(size, folder, 0.2)


def half(size: Size, folder: Path) -> Case:
    return _shuffled(size, folder, 0.5)


SICK = (a_fifth, half)


def healthy(size: Size, folder: Path) -> Case:
    """A model with noise, whose hard pairs are right."""
    return Case((pairs(folder, *aligned(size, noise=1.2), name="healthy.npz"),))
