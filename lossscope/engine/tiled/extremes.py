"""Hardest negatives and ranks of one direction, gathered tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lossscope.objectives.counting.base import Undecided, undecided_maximum, undecided_near
from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import Extremes


class ExtremeTracker:
    """hardest, column: (n,) the largest negative met and where. above, level: (n,) negatives above the best positive,
    and at least as high."""

    def __init__(self, known: QueryPositives, space: Buffers) -> None:
        self.known, self.best, self.space = known, known.best, space
        n, device = len(self.best), self.best.device
        self.hardest = torch.full_like(self.best, -torch.inf)
        self.column = torch.full((n,), -1, dtype=torch.int64, device=device)
        self.above = torch.zeros(n, dtype=torch.float64, device=device)
        self.level = torch.zeros_like(self.above)

    def add(self, tile: Tensor, rows: slice, columns: slice, dim: int) -> None:
        """Meet a tile whose cells that are no negatives are −inf; columns: the candidates it is about."""
        found = tile.amax(dim)
        better = (found > self.hardest[rows]).nonzero()[:, 0]
        if len(better):
            lines = tile[better] if dim == 1 else tile[:, better].T.contiguous()
            self.column[rows.start + better] = lines.argmax(1) + columns.start
            self.hardest[rows.start + better] = found[better]
        best, truth = self.best[rows].unsqueeze(dim), self.space.like(tile)
        self.above[rows] += self.space.total(torch.gt(tile, best, out=truth), dim)
        self.level[rows] += self.space.total(torch.ge(tile, best, out=truth), dim)

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        """As a side has it."""
        return undecided_maximum(tile, dim, self.hardest[rows], error), undecided_near(self.best[rows], error)

    def correct(self, queries: Tensor, best: Tensor, lines: Tensor) -> None:
        """Rank some queries anew, from their whole rows of negatives, (k, c), and the best positive of each, (k,)."""
        self.above[queries] = torch.gt(lines, best[:, None]).sum(1).double()
        self.level[queries] = torch.ge(lines, best[:, None]).sum(1).double()

    def state(self) -> dict[str, Any]:
        """What other processes need of it."""
        return {name: getattr(self, name) for name in ("hardest", "column", "above", "level")}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        """Become the sum of all processes; of equal hardest negatives the one in the first column."""
        self.above, self.level = (torch.stack([s[name] for s in states]).sum(0) for name in ("above", "level"))
        hardest, column = (torch.stack([s[name] for s in states]) for name in ("hardest", "column"))
        self.hardest = hardest.amax(0)
        far = torch.iinfo(torch.int64).max
        first = column.where((hardest == self.hardest) & (column >= 0), far).amin(0)
        self.column = first.where(first < far, -1)

    def extremes(self) -> Extremes:
        """What was met; NaN and −1 where there is nothing."""
        none = self.hardest == -torch.inf
        return Extremes(
            self.best.where(self.best > -torch.inf, torch.nan),
            self.hardest.where(~none, torch.nan),
            self.column.where(~none, -1),
            self.above.long(),
            (self.level - self.above).long(),
        )
