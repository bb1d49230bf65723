"""A loss of nearly nothing: a note."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, pairs


def _case(size: Size, folder: Path, noise: float, name: str) -> Case:
    options = {"objective": "ntxent:tau=0.1", "batch_size": 32}
    return Case((pairs(folder, *aligned(size, noise=noise, decay=0.0), name=name),), options)


def converged(size: Size, folder: Path) -> Case:
    return _case(Size(size.n, max(size.d, 64), 32, size.seed), folder, 0.1, "dump.npz")


SICK = (converged,)


def healthy(size: Size, folder: Path) -> Case:
    """A loss that is not yet so low."""
    return _case(Size(size.n, max(size.d, 64), 32, size.seed), folder, 1.2, "healthy.npz")
