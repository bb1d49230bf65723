"""Items of the training data and of held-out data, to see whether they share any."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.types import Rows


@dataclass(frozen=True)
class SharedItems:
    """Items of one side in both splits."""

    name: str  # of the side, plural
    train: str  # name of the split
    held_out: str
    total: int  # held-out items that were compared
    equal: Rows  # rows of those whose input is in the training data
    near: Rows  # rows of those whose embedding nearly equals one there


@dataclass(frozen=True)
class Splits:
    """What training and held-out data share, side by side."""

    shared: tuple[SharedItems, ...]


def near_rows(held_out: Tensor, train: Tensor, cosine: float) -> Rows:
    """Return the rows (n, d) whose nearest row of (m, d) has at least a cosine; unit rows."""
    near = []
    for start in range(0, len(held_out), 1024):
        block = held_out[start : start + 1024].float()
        best = torch.full((len(block),), -torch.inf)
        for part in torch.split(train, 1 << 14):
            best = torch.maximum(best, (block @ part.float().T).amax(1))
        near.append((best >= cosine).nonzero()[:, 0] + start)
    rows: Rows = torch.cat(near).numpy() if near else torch.zeros(0, dtype=torch.int64).numpy()
    return rows
