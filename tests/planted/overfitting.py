"""Recall that falls on validation data while the training loss falls; a validation loss that rises."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def _log(size: Size, folder: Path, name: str, **validation: object) -> Case:
    start = math.log(size.batch)
    path = log(
        folder, name, validation, loss=start * np.linspace(1, 0.02, 400) * (1 + 0.03 * size.rng.normal(size=400))
    )
    return Case((), {"log": path, "batch_size": size.batch})


def recall(size: Size, folder: Path) -> Case:
    return _log(size, folder, "train.csv", val_recall=40 - 3.0 * np.abs(np.arange(12) - 4))


def both(size: Size, folder: Path) -> Case:
    values = {"val_recall": 40 - 3.0 * np.abs(np.arange(12) - 4), "val_train_recall": np.linspace(20, 95, 12)}
    return _log(size, folder, "train.csv", **values)


def loss(size: Size, folder: Path) -> Case:
    return _log(size, folder, "train.csv", val_loss=2 + 0.08 * np.abs(np.arange(12) - 3.0))


SICK = (recall, both, loss)


def healthy(size: Size, folder: Path) -> Case:
    """Validation recall that rises while the validation loss rises, as in fine-tuning."""
    start = math.log(size.batch)
    validation = {"val_recall": 40 * (1 - np.exp(-np.arange(1, 13.0))), "val_loss": np.linspace(2, 2.6, 12)}
    path = log(folder, "healthy.csv", validation, loss=curve(size, start, 0.1 * start))
    return Case((), {"log": path, "batch_size": size.batch})
