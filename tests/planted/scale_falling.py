"""A learnt scale that falls while the loss stays, as a factor and as its logarithm."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, curve, log


def _flat(size: Size) -> Floats:
    return 0.96 * math.log(size.batch) * (1 + 0.003 * size.rng.normal(size=400))


def factor(size: Size, folder: Path) -> Case:
    path = log(folder, loss=_flat(size), logit_scale=np.linspace(14.3, 1.0, 400))
    return Case((), {"log": path, "batch_size": size.batch})


def logarithm(size: Size, folder: Path) -> Case:
    path = log(folder, loss=_flat(size), logit_scale=np.linspace(2.66, 0.5, 400))
    return Case((), {"log": path, "batch_size": size.batch})


def at_log_b(size: Size, folder: Path) -> Case:
    loss = math.log(size.batch) * (1 + 0.002 * size.rng.normal(size=400))
    path = log(folder, loss=loss, logit_scale=np.linspace(14.3, 1.0, 400))
    return Case((), {"log": path, "batch_size": size.batch})


SICK = (factor, logarithm, at_log_b)


def healthy(size: Size, folder: Path) -> Case:
    """A scale that dips and returns while the loss falls."""
    scale = 100 - 30 * np.sin(np.linspace(0, math.pi, 400))
    start = math.log(size.batch)
    path = log(folder, "healthy.csv", loss=curve(size, start, 0.2 * start), logit_scale=scale)
    return Case((), {"log": path, "batch_size": size.batch})
