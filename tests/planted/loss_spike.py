"""A loss that jumps up and returns, once and often."""

from __future__ import annotations

import math
from pathlib import Path

from .base import Case, Floats, Size, curve, healthy_log, log


def _spiked(size: Size, steps: tuple[int, ...], length: int) -> Floats:
    start = math.log(size.batch)
    loss = curve(size, start, 0.3 * start)
    for step in steps:
        loss[step : step + length] += 0.8 * start
    return loss


def one(size: Size, folder: Path) -> Case:
    return Case((), {"log": log(folder, loss=_spiked(size, (220,), 2)), "batch_size": size.batch})


def many(size: Size, folder: Path) -> Case:
    return Case((), {"log": log(folder, loss=_spiked(size, (120, 200, 280, 330), 4)), "batch_size": size.batch})


def division(size: Size, folder: Path) -> Case:
    """Batches without an active pair, whose loss is a sum over almost 0."""
    loss = curve(size, 1.0, 0.3)
    loss[100::37] = 997187911680.0
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


SICK = (one, many, division)
healthy = healthy_log
