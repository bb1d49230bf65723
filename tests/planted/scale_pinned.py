"""A learnt scale at its clamp: a note."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def _log(size: Size, folder: Path, scale: object, name: str) -> Case:
    start = math.log(size.batch)
    path = log(folder, name, loss=curve(size, start, 0.2 * start), logit_scale=scale)
    return Case((), {"log": path, "batch_size": size.batch})


def at_100(size: Size, folder: Path) -> Case:
    return _log(size, folder, np.minimum(np.linspace(14.3, 150, 400), 100), "train.csv")


def logarithm(size: Size, folder: Path) -> Case:
    return _log(size, folder, np.minimum(np.linspace(2.66, 6, 400), math.log(100)), "train.csv")


SICK = (at_100, logarithm)


def healthy(size: Size, folder: Path) -> Case:
    """A scale that grows."""
    return _log(size, folder, np.linspace(14.3, 40, 400), "healthy.csv")
