"""Items in two encodings that differ by padding in the mean, batch norm of the batch, dropout, or rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.sources.base import load

from .base import Case, Floats, Size, aligned, pairs, unit


def _case(size: Size, folder: Path, name: str, first: Floats, second: Floats, **options: Any) -> Case:
    alone = pairs(folder, *aligned(size), name=f"{name}-alone.npz")
    batches = pairs(folder, first, second, f"{name}.npz")
    return Case((alone, batches), {"same_items": True, "batch_size": size.batch, **options})


def _padded(x: Floats, size: Size) -> Floats:
    """Return means over tokens and the padding up to the longest of 32 texts."""
    lengths = size.rng.integers(4, 40, len(x))
    longest = np.array([lengths[start : start + 32].max() for start in range(0, len(x), 32)]).repeat(32)[: len(x)]
    padding = unit(size.rng.normal(size=(1, x.shape[1])))
    return unit(x * (lengths / longest)[:, None] + padding * (1 - lengths / longest)[:, None])


def model(size: Size, folder: Path) -> Case:
    """A model that counts padding: an item's vector depends on the longest item of its batch."""
    first, second = (torch.from_numpy(x) for x in aligned(size))
    lengths = torch.from_numpy(size.rng.integers(4, 40, size.n))

    def encode(vectors: torch.Tensor, batches: Sequence[Rows]) -> torch.Tensor:
        shares = [(lengths[rows] / lengths[rows].max())[:, None] for rows in batches]
        padded = [vectors[rows] * share + (1 - share) for rows, share in zip(batches, shares, strict=True)]
        return torch.nn.functional.normalize(torch.cat(padded), dim=1)

    split = load(pairs(folder, first.numpy(), second.numpy()), raw=True)
    encode_rows = Pair(partial(encode, first), partial(encode, second))
    return Case((replace(split, encode_rows=encode_rows),), {"batch_size": size.batch})


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


SICK = (model, padding, batch_norm, dropout)


def healthy(size: Size, folder: Path) -> Case:
    """Two encodings that differ by rounding."""
    first, second = (x + 1e-6 * size.rng.normal(size=x.shape) for x in aligned(size))
    return _case(size, folder, "healthy", first, second)
