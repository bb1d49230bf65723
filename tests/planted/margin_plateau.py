"""Triplet losses at their margin: collapsed vectors, logs with and without similarities."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, curve, log, pairs, unit


def vectors(size: Size, folder: Path) -> Case:
    centre = unit(size.rng.normal(size=(1, size.d)))
    rngs = np.random.default_rng(1), np.random.default_rng(2)
    sides = [unit(centre + 0.003 / np.sqrt(size.d) * rng.normal(size=(size.n, size.d))) for rng in rngs]
    return Case((pairs(folder, *sides),), {"objective": "triplet-sh:margin=0.2", "batch_size": size.batch})


def mean_loss(size: Size, folder: Path) -> Case:
    loss = 0.2 * (1 + 0.002 * size.rng.normal(size=300))
    return Case((), {"log": log(folder, loss=loss), "objective": "triplet-sh:margin=0.2", "batch_size": size.batch})


def all_negatives(size: Size, folder: Path) -> Case:
    loss = 0.2 * (size.batch - 1) * (1 + 0.001 * size.rng.normal(size=300))
    return Case((), {"log": log(folder, loss=loss), "objective": "triplet:margin=0.2", "batch_size": size.batch})


def similarities(size: Size, folder: Path) -> Case:
    near = 0.999 + 1e-4 * size.rng.normal(size=300)
    path = log(folder, loss=0.5 * (1 + 0.002 * size.rng.normal(size=300)), pos_mean=near, neg_mean=near + 1e-3)
    return Case((), {"log": path})


def from_above(size: Size, folder: Path) -> Case:
    """Unnormalised vectors shrink into one point: the loss comes down to its margin from above."""
    loss = 0.2 + 4 * np.exp(-np.arange(480) / 40) + 0.002 * np.abs(size.rng.normal(size=480))
    return Case((), {"log": log(folder, loss=loss), "objective": "triplet-sh:margin=0.2", "batch_size": size.batch})


SICK = (vectors, mean_loss, all_negatives, similarities, from_above)


def healthy(size: Size, folder: Path) -> Case:
    """A triplet loss that falls."""
    path = log(folder, "healthy.csv", loss=curve(size, 0.2, 0.03, noise=0.1))
    return Case((), {"log": path, "objective": "triplet-sh:margin=0.2", "batch_size": size.batch})
