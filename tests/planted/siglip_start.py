"""A sigmoid loss whose bias begins at the paper's -10 in small batches, or at 0."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def zero(size: Size, folder: Path) -> Case:
    bias = np.linspace(0, -math.log(size.batch), 400)
    path = log(folder, loss=curve(size, 3.0, 0.5), logit_bias=bias)
    return Case((), {"log": path, "batch_size": max(size.batch, 128)})


def minus_ten(size: Size, folder: Path) -> Case:
    path = log(folder, "minus_ten.csv", loss=curve(size, 3.0, 0.5), logit_bias=np.linspace(-10, -8, 400))
    return Case((), {"log": path, "batch_size": min(size.batch, 256)})


SICK = (zero, minus_ten)


def healthy(size: Size, folder: Path) -> Case:
    """A bias at the prior."""
    path = log(folder, "healthy.csv", loss=curve(size, 3.0, 0.5), logit_bias=np.full(400, -math.log(size.batch - 1)))
    return Case((), {"log": path, "batch_size": size.batch})
