"""A training that resumes at a higher loss than it ended: the learning rate restarts, or the log has no rate."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, curve, log


def _resumed(size: Size, again: float) -> Floats:
    """Return a loss that falls twice, the second time from a share of the start."""
    start = math.log(size.batch)
    return np.concatenate([curve(size, start, 0.25 * start, 300), curve(size, again * start, 0.25 * start, 300)])


def with_rate(size: Size, folder: Path) -> Case:
    rate = np.tile(np.linspace(1e-4, 1e-6, 300), 2)
    return Case((), {"log": log(folder, loss=_resumed(size, 0.8), lr=rate), "batch_size": size.batch})


def stays(size: Size, folder: Path) -> Case:
    """The rate jumps up and the loss does not return: the seam explains the higher loss."""
    start = math.log(size.batch)
    loss = curve(size, start, 0.25 * start, 600)
    loss[300:] = 0.7 * start * (1 + 0.02 * size.rng.normal(size=300))
    rate = np.repeat([1e-5, 1e-3], 300)
    return Case((), {"log": log(folder, loss=loss, lr=rate), "batch_size": size.batch})


def without_rate(size: Size, folder: Path) -> Case:
    return Case((), {"log": log(folder, loss=_resumed(size, 0.8)), "batch_size": size.batch})


SICK = (with_rate, stays, without_rate)


def healthy(size: Size, folder: Path) -> Case:
    """Warm restarts: the rate jumps, and the loss continues where it was."""
    start = math.log(size.batch)
    path = log(
        folder, "healthy.csv", loss=curve(size, start, 0.25 * start, 600), lr=np.tile(np.linspace(1e-4, 1e-6, 300), 2)
    )
    return Case((), {"log": path, "batch_size": size.batch})
