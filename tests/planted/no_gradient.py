"""Batches so easy that no negative counts, while retrieval among all fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, pairs, unit


def _groups(size: Size, group: int, spread: float) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Return items of groups that lie far apart: a query finds its group easily, its item hardly."""
    rng = size.rng
    centres = unit(rng.normal(size=(size.n // group + 1, size.d)))
    item_centres = np.repeat(centres, group, 0)[: size.n]
    sides = [unit(item_centres + spread / np.sqrt(size.d) * rng.normal(size=item_centres.shape)) for _ in range(2)]
    return sides[0], sides[1]


def groups(size: Size, folder: Path) -> Case:
    first, second = _groups(size, max(size.n // 300, 8), 0.3)
    options = {"objective": "triplet:margin=0.1", "batch_size": 8}
    return Case((pairs(folder, first, second),), options)


SICK = (groups,)


def healthy(size: Size, folder: Path) -> Case:
    """A converged model: no gradient, and high recall."""
    first, second = _groups(size, 1, 0.1)
    return Case((pairs(folder, first, second, "healthy.npz"),), {"objective": "triplet:margin=0.1", "batch_size": 8})
