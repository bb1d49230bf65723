"""The hardest negative and the rank of each query: one fold, of ranks alone or of both."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from .block import Block
from .fold import Fold
from .rows import QueryPositives


class RankFold(Fold):
    """The number of entries above each of p values of a query, and at least as high: (n, p) float64 each."""

    kept: ClassVar[tuple[str, ...]] = ("above", "at_least")

    def __init__(self, values: Tensor) -> None:
        self.values = values  # (n, p); infinite where a query has fewer
        self.begin()

    def begin(self, known: Any = None) -> None:
        self.above = torch.zeros_like(self.values, dtype=torch.float64)
        self.at_least = torch.zeros_like(self.above)

    def add(self, block: Block) -> None:
        rows = block.rows
        for i in range(self.values.shape[1]):
            value = self.values[rows, i]
            self.above[rows, i] += block.sum(block.above(value))
            self.at_least[rows, i] += block.sum(block.at_least(value))

    def merge(self, later: RankFold) -> None:
        self.above, self.at_least = self.above + later.above, self.at_least + later.at_least


class ExtremesFold(RankFold):
    """The hardest negative of each query, its candidate, and the rank of its best positive.

    hardest: (n,) largest negative so far, −inf before the first; column: (n,) its candidate, −1 before the first.
    """

    kept = ("hardest", "column", *RankFold.kept)

    def __init__(self, positives: QueryPositives) -> None:
        self.best = positives.best
        super().__init__(self.best[:, None])

    def begin(self, known: Any = None) -> None:
        super().begin()
        self.hardest = torch.full_like(self.best, -torch.inf)
        self.column = torch.full((len(self.best),), -1, dtype=torch.int64, device=self.best.device)

    def add(self, block: Block) -> None:
        rows, largest = block.rows, block.max()
        better = (largest > self.hardest[rows]).nonzero()[:, 0]
        if len(better):
            self.column[rows.start + better] = block.by_query(better).argmax(1) + block.columns.start
            self.hardest[rows.start + better] = largest[better]
        super().add(block)

    def merge(self, later: RankFold) -> None:
        """Of equal hardest negatives the first column is taken, whichever block came before."""
        assert isinstance(later, ExtremesFold)
        super().merge(later)
        hardest = torch.maximum(self.hardest, later.hardest)
        last = torch.iinfo(torch.int64).max
        columns = (x.column.where((x.hardest == hardest) & (x.column >= 0), last) for x in (self, later))
        first = torch.minimum(*columns)
        self.hardest, self.column = hardest, first.where(first < last, -1)
