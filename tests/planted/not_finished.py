"""Validation recall that still rises: a note."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def _log(size: Size, folder: Path, recall: object, name: str) -> Case:
    start = math.log(size.batch)
    path = log(folder, name, {"val_recall": recall}, loss=curve(size, start, 0.4 * start))
    return Case((), {"log": path, "batch_size": size.batch})


def rising(size: Size, folder: Path) -> Case:
    return _log(size, folder, np.linspace(2, 40, 10), "train.csv")


SICK = (rising,)


def healthy(size: Size, folder: Path) -> Case:
    """Recall that has settled."""
    return _log(size, folder, 40 * (1 - np.exp(-np.arange(1, 13.0))), "healthy.csv")
