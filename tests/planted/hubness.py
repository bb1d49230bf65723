"""A few candidates near most queries."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, healthy_dump, pairs, unit


def hubs(size: Size, folder: Path) -> Case:
    """Queries share a direction to which a few candidates point."""
    first, second = aligned(size)
    centre = unit(size.rng.normal(size=(1, size.d)))
    first = unit(first + 0.7 * centre)
    rows = size.rng.choice(size.n, max(size.n // 200, 3), replace=False)
    second[rows] = unit(second[rows] + 3 * centre)
    return Case((pairs(folder, first, second),))


SICK = (hubs,)
healthy = healthy_dump
