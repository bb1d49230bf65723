"""Two sides far apart: a note."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, healthy_dump, pairs, unit


def gap(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    apart = 0.5 * unit(size.rng.normal(size=(1, size.d)))
    return Case((pairs(folder, unit(first + apart), unit(second - apart)),))


SICK = (gap,)
healthy = healthy_dump
