"""A loss that leaves for good: at once, and slowly."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, healthy_log, log


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


SICK = (jump, climb)
healthy = healthy_log
