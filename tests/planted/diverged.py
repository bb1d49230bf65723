"""A loss that rises and does not return: at once, slowly, and from a trained start."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def jump(size: Size, folder: Path) -> Case:
    start = math.log(size.batch)
    loss = curve(size, start, 0.3 * start)
    loss[250:] = 1.5 * start * (1 + 0.05 * size.rng.normal(size=150))
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


def climb(size: Size, folder: Path) -> Case:
    start = math.log(size.batch)
    loss = curve(size, start, 0.3 * start)
    loss[200:] *= 1 + 4 * (1 - 0.98 ** np.arange(200))
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


def collapse(size: Size, folder: Path) -> Case:
    """The loss of a trained model begins low, and its embeddings collapse into one."""
    loss = math.log(size.batch) * (1 + 0.0003 * size.rng.normal(size=400))
    loss[:8] = np.linspace(0.02, 0.8 * math.log(size.batch), 8)
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


SICK = (jump, climb, collapse)


def healthy(size: Size, folder: Path) -> Case:
    """A queue of keys that fills, as MoCo's: the loss rises from its start, then falls slowly."""
    steps = np.arange(400)
    loss = 0.5 + 8.5 * (1 - np.exp(-steps / 12)) - 2.2 * (1 - np.exp(-np.maximum(steps - 40, 0) / 150))
    path = log(folder, "healthy.csv", loss=loss * (1 + 0.01 * size.rng.normal(size=400)))
    return Case((), {"log": path})
