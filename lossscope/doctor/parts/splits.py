"""Items of the training data and of held-out data, to see whether they share any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lossscope.core.types import Rows

NEAR = 0.01  # of the usual distance between neighbours: an input that is encoded twice has 1e-5 of it
_TILE, _WITHIN = 1 << 14, 2048
_RESOLUTION = 5e-4  # of a distance from a cosine in float32


@dataclass(frozen=True)
class SharedItems:
    """Items of one side in both splits."""

    name: str  # of the side
    train: str  # name of the split
    held_out: str
    total: int  # held-out items that were compared
    equal: Rows  # held-out rows of those whose input is in the training data
    near: Rows  # held-out rows of those whose embedding nearly equals one there
    usual: float = 0.0  # share of the training items whose embedding nearly equals that of another one
    ids: Sequence[str] = field(default=(), repr=False)  # of all held-out items

    @property
    def rows(self) -> Rows:
        """Held-out rows that are in the training data, ascending."""
        return np.union1d(self.equal, self.near)

    @property
    def share(self) -> float:
        """Share of the held-out items that are in the training data."""
        return len(self.rows) / max(self.total, 1)


@dataclass(frozen=True)
class Splits:
    """What training and held-out data share, side by side."""

    shared: tuple[SharedItems, ...]


def near_rows(held_out: Tensor, train: Tensor, share: float = NEAR) -> tuple[Rows, float]:
    """Return the rows (n, d) whose distance to the nearest row of (m, d) is a small share of that within (m, d).

    Beside them stands the share of (m, d) that is as near to another row there.

    Of a model that has collapsed all distances are small, so they are compared with those of its own items.

    Args:
        held_out: unit rows.
        train: unit rows.
        share: of the median distance of a training item to its nearest other one.
    """
    nearest, _ = _nearest(held_out, train)
    distances = (held_out.double() - train[nearest].double()).norm(dim=1)
    some = train[:_WITHIN]
    _, cosines = _nearest(some, train, skip_self=True)
    own = (2 - 2 * cosines.double()).clamp(min=0).sqrt()
    limit = share * float(own.median())
    rows: Rows = (distances <= limit).nonzero()[:, 0].numpy()
    return rows, float((own <= max(limit, _RESOLUTION)).double().mean())


def _nearest(rows: Tensor, among: Tensor, skip_self: bool = False) -> tuple[Tensor, Tensor]:
    """Return the nearest row of each, and its cosine; not itself where `rows` are the first rows of `among`."""
    places, best = [], []
    for start in range(0, len(rows), 1024):
        block = rows[start : start + 1024].float()
        top = torch.full((len(block),), -torch.inf)
        place = torch.zeros(len(block), dtype=torch.int64)
        for offset in range(0, len(among), _TILE):
            S = block @ among[offset : offset + _TILE].float().T
            if skip_self:
                own = torch.arange(start, start + len(block)) - offset
                inside = (own >= 0) & (own < S.shape[1])
                S[inside.nonzero()[:, 0], own[inside]] = -torch.inf
            values, columns = S.max(1)
            place = torch.where(values > top, columns + offset, place)
            top = torch.maximum(top, values)
        places.append(place)
        best.append(top)
    return torch.cat(places), torch.cat(best)
