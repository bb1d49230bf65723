"""A loss of exactly 0 from the beginning: in all steps, and in most."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log


def always(size: Size, folder: Path) -> Case:
    """Inverted margins, or no positive in any batch."""
    return Case((), {"log": log(folder, loss=np.zeros(400)), "batch_size": size.batch})


def mostly(size: Size, folder: Path) -> Case:
    """Few batches have a positive."""
    loss = np.where(size.rng.random(400) < 0.8, 0.0, curve(size, 0.6, 0.4))
    return Case((), {"log": log(folder, loss=loss), "batch_size": size.batch})


SICK = (always, mostly)


def healthy(size: Size, folder: Path) -> Case:
    """A hinge loss that falls to 0 and stays there for most of the training."""
    loss = np.maximum(0.2 * np.exp(-np.arange(400) / 30) - 0.02 * size.rng.random(400), 0)
    path = log(folder, "healthy.csv", loss=loss)
    return Case((), {"log": path, "objective": "triplet-sh:margin=0.2", "batch_size": size.batch})
