"""The hardest negative and the rank of each query of one direction, accumulated tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import Extremes


class ExtremeTracker:
    """The hardest negative of each of n queries, and the number of negatives above its best positive.

    Attributes:
        best: (n,) similarity of the best positive.
        hardest: (n,) largest negative so far, −inf before the first.
        column: (n,) its candidate, −1 before the first.
        above: (n,) number of negatives above the best positive.
        at_least: (n,) number of negatives at least as high as the best positive.
    """

    def __init__(self, positives: QueryPositives, buffers: Buffers) -> None:
        self.best, self.buffers = positives.best, buffers
        n, device = len(self.best), self.best.device
        self.hardest = torch.full_like(self.best, -torch.inf)
        self.column = torch.full((n,), -1, dtype=torch.int64, device=device)
        self.above = torch.zeros(n, dtype=torch.float64, device=device)
        self.at_least = torch.zeros_like(self.above)

    def add(self, tile: Tensor, rows: slice, columns: slice, dim: int) -> None:
        """Add a tile.

        Args:
            tile: (r, w), −inf on entries that are not negatives.
            rows: the queries of the tile.
            columns: the candidates of the tile.
            dim: 1 where the queries are its rows, 0 where they are its columns.
        """
        largest = tile.amax(dim)
        better = (largest > self.hardest[rows]).nonzero()[:, 0]
        if len(better):
            by_query = tile[better] if dim == 1 else tile[:, better].T.contiguous()
            self.column[rows.start + better] = by_query.argmax(1) + columns.start
            self.hardest[rows.start + better] = largest[better]
        best, comparison = self.best[rows].unsqueeze(dim), self.buffers.empty_like(tile)
        self.above[rows] += self.buffers.sum(torch.gt(tile, best, out=comparison), dim)
        self.at_least[rows] += self.buffers.sum(torch.ge(tile, best, out=comparison), dim)

    def correct_ranks(self, queries: Tensor, best: Tensor, negatives: Tensor) -> None:
        """Replace the ranks of some queries.

        Args:
            queries: (k,) of them.
            best: (k,) similarity of the best positive of each.
            negatives: (k, c) whole rows, −inf on entries that are not negatives.
        """
        self.above[queries] = torch.gt(negatives, best[:, None]).sum(1).double()
        self.at_least[queries] = torch.ge(negatives, best[:, None]).sum(1).double()

    def state(self) -> dict[str, Any]:
        """Return what other processes need for `merge`."""
        return {name: getattr(self, name) for name in ("hardest", "column", "above", "at_least")}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        """Replace the state by that over all processes; of equal hardest negatives the first column is taken."""
        self.above, self.at_least = (torch.stack([s[name] for s in states]).sum(0) for name in ("above", "at_least"))
        hardest, column = (torch.stack([s[name] for s in states]) for name in ("hardest", "column"))
        self.hardest = hardest.amax(0)
        last = torch.iinfo(torch.int64).max
        first = column.where((hardest == self.hardest) & (column >= 0), last).amin(0)
        self.column = first.where(first < last, -1)

    def extremes(self) -> Extremes:
        """Return the extremes of all tiles so far; NaN and −1 where a query has no positive or no negative."""
        none = self.hardest == -torch.inf
        return Extremes(
            self.best.where(self.best > -torch.inf, torch.nan),
            self.hardest.where(~none, torch.nan),
            self.column.where(~none, -1),
            self.above.long(),
            (self.at_least - self.above).long(),
        )
