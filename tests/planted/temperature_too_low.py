"""A softmax at a temperature of a thousandth."""

from __future__ import annotations

from pathlib import Path

from .base import Case, Size, aligned, pairs


def _case(size: Size, folder: Path, tau: float, name: str) -> Case:
    weak = aligned(size, noise=3.0 * (size.d / 64) ** 0.25)
    return Case((pairs(folder, *weak, name=name),), {"objective": f"ntxent:tau={tau}", "batch_size": size.batch})


def thousandth(size: Size, folder: Path) -> Case:
    return _case(size, folder, 0.001, "dump.npz")


SICK = (thousandth,)


def healthy(size: Size, folder: Path) -> Case:
    """The same vectors at a usual temperature."""
    return _case(size, folder, 0.07, "healthy.npz")
