"""Views compared with themselves: one array twice, and a labelled set of views without augmentation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump, pairs


def one_array(size: Size, folder: Path) -> Case:
    first, _ = aligned(size)
    return Case((pairs(folder, first, first),), {"batch_size": size.batch, "objective": "ntxent:tau=0.1"})


def encoded_twice(size: Size, folder: Path) -> Case:
    first, _ = aligned(size)
    again = first + 1e-6 / np.sqrt(size.d) * size.rng.normal(size=first.shape)
    return Case((pairs(folder, first, again),), {"batch_size": size.batch})


def labelled(size: Size, folder: Path) -> Case:
    first, _ = aligned(size)
    labels = np.arange(size.n).repeat(2)
    return Case((dump(folder, embeddings=first.repeat(2, axis=0), labels=labels),), {"batch_size": size.batch})


SICK = (one_array, encoded_twice, labelled)


def healthy(size: Size, folder: Path) -> Case:
    """Views of a model that has nearly learnt them, and a few items that were saved twice."""
    first, second = aligned(size, noise=0.3)
    second[: size.n // 20] = first[: size.n // 20]
    return Case((pairs(folder, first, second, "healthy.npz"),), {"batch_size": size.batch})
