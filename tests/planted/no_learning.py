"""The loss of guessing: unrelated vectors, and logs that stay at log B."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, healthy_log, log, pairs, unit


def vectors(size: Size, folder: Path) -> Case:
    rng = size.rng
    sides = [unit(rng.normal(size=(size.n, size.d))) for _ in range(2)]
    return Case((pairs(folder, *sides),), {"objective": "ntxent:tau=0.07", "batch_size": size.batch})


def _stuck(size: Size, level: float, **options: object) -> tuple[np.ndarray, dict[str, object]]:  # type: ignore[type-arg]
    loss = level * (1 + 0.003 * size.rng.normal(size=400))
    loss[:40] += np.linspace(1.0, 0, 40)
    return loss, options


def with_batch_size(size: Size, folder: Path) -> Case:
    loss, _ = _stuck(size, 0.997 * math.log(size.batch))
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


def unknown_batch_size(size: Size, folder: Path) -> Case:
    loss = math.log(size.batch) * (1 + 0.002 * size.rng.normal(size=300))
    return Case((), {"log": log(folder, loss=loss)})


def both_directions(size: Size, folder: Path) -> Case:
    loss, _ = _stuck(size, 2 * math.log(size.batch))
    options = {"log": log(folder, loss=loss), "batch_size": size.batch, "objective": "ntxent:tau=0.1"}
    return Case((), options)


def log_two(size: Size, folder: Path) -> Case:
    loss = math.log(2) * (1 + 0.002 * size.rng.normal(size=300))
    return Case((), {"log": log(folder, loss=loss)})


SICK = (vectors, with_batch_size, unknown_batch_size, both_directions, log_two)
healthy = healthy_log
