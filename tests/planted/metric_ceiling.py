"""Metrics at their ceiling: Spearman of a gold standard of two values, recall among few candidates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, curve, log


def _log(size: Size, folder: Path, name: str, validation: dict[str, Floats]) -> Case:
    start = math.log(size.batch)
    path = log(folder, name, validation, loss=curve(size, start, 0.2 * start))
    return Case((), {"log": path, "batch_size": size.batch})


def _rising(size: Size, end: float) -> Floats:
    return end * (1 - np.exp(-1.5 * np.arange(1, 13.0))) - 1e-4 * size.rng.random(12)


def binary_gold(size: Size, folder: Path) -> Case:
    validation = {"eval_spearman_cosine": _rising(size, 0.8655), "eval_pearson_cosine": _rising(size, 0.96)}
    return _log(size, folder, "train.csv", validation)


def few_candidates(size: Size, folder: Path) -> Case:
    return _log(size, folder, "train.csv", {"val_R@1": np.array([60, 90, 100.0, 100, 100, 100])})


SICK = (binary_gold, few_candidates)


def healthy(size: Size, folder: Path) -> Case:
    """Spearman of graded similarities, with Pearson beside it, near the same number."""
    validation = {"eval_spearman_cosine": _rising(size, 0.857), "eval_pearson_cosine": _rising(size, 0.862)}
    return _log(size, folder, "healthy.csv", validation)
