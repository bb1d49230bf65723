"""Items of both sides around one direction: a note."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, healthy_dump, pairs, unit


def cone(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    centre = unit(size.rng.normal(size=(1, size.d)))
    return Case((pairs(folder, unit(first + centre), unit(second + centre)),))


SICK = (cone,)
healthy = healthy_dump
