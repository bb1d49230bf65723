"""A softmax at a temperature of 1 and of 3."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, pairs


def one(size: Size, folder: Path) -> Case:
    return _case(size, folder, 1.0, "dump.npz")


def three(size: Size, folder: Path) -> Case:
    return _case(size, folder, 3.0, "dump.npz")


def _case(size: Size, folder: Path, tau: float, name: str) -> Case:
    return Case(
        (pairs(folder, *aligned(size), name=name),), {"objective": f"ntxent:tau={tau}", "batch_size": size.batch}
    )


SICK = (one, three)


def healthy(size: Size, folder: Path) -> Case:
    """The same vectors at a usual temperature."""
    return _case(size, folder, 0.07, "healthy.npz")
