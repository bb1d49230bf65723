"""Items in two encodings: padding in the mean, batch norm of the batch, dropout that is on; and rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .base import Case, Floats, Size, aligned, pairs, unit


def _case(size: Size, folder: Path, name: str, first: Floats, second: Floats, **options: Any) -> Case:
    alone = pairs(folder, *aligned(size), name=f"{name}-alone.npz")
    batches = pairs(folder, first, second, f"{name}.npz")
    return Case((alone, batches), {"same_items": True, "batch_size": size.batch, **options})


def _padded(x: Floats, size: Size) -> Floats:
    """Return means of which padding up to the longest of 32 texts is a part."""
    lengths = size.rng.integers(4, 40, len(x))
    longest = np.array([lengths[start : start + 32].max() for start in range(0, len(x), 32)]).repeat(32)[: len(x)]
    padding = unit(size.rng.normal(size=(1, x.shape[1])))
    return unit(x * (lengths / longest)[:, None] + padding * (1 - lengths / longest)[:, None])


def padding(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return _case(size, folder, "padding", first, _padded(second, size))


def batch_norm(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    parts = [first[start : start + 16] for start in range(0, len(first), 16)]
    centred = np.concatenate([(part - part.mean(0)) / (part.std(0) + 1e-3) for part in parts if len(part) > 1])
    return _case(size, folder, "batch-norm", np.concatenate([centred, first[len(centred) :]]), second)


def dropout(size: Size, folder: Path) -> Case:
    first, second = (x * (size.rng.random(x.shape) > 0.1) / 0.9 for x in aligned(size))
    return _case(size, folder, "dropout", unit(first), unit(second))


SICK = (padding, batch_norm, dropout)


def healthy(size: Size, folder: Path) -> Case:
    """Two encodings that differ by rounding."""
    first, second = (x + 1e-6 * size.rng.normal(size=x.shape) for x in aligned(size))
    return _case(size, folder, "healthy", first, second)
