"""The hardest negative and the rank of each query: one fold, of ranks alone or of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .block import Block
from .fold import Fold, State
from .rows import QueryPositives


@dataclass(frozen=True, eq=False)
class RankFold(Fold["RankState"]):
    """The number of entries above each of p values of a query, and at least as high."""

    values: Tensor  # (n, p); infinite where a query has fewer

    def start(self, known: Any = None) -> RankState:
        return RankState(self)


class RankState(State):
    """above, at_least: (n, p) float64."""

    def __init__(self, fold: RankFold) -> None:
        self.fold = fold
        self.above = torch.zeros_like(fold.values, dtype=torch.float64)
        self.at_least = torch.zeros_like(self.above)

    def add(self, block: Block) -> None:
        rows = block.rows
        for i in range(self.fold.values.shape[1]):
            value = self.fold.values[rows, i]
            self.above[rows, i] += block.sum(block.above(value))
            self.at_least[rows, i] += block.sum(block.at_least(value))

    def merge(self, later: RankState) -> None:
        self.above, self.at_least = self.above + later.above, self.at_least + later.at_least

    def numbers(self) -> dict[str, Any]:
        return {"above": self.above, "at_least": self.at_least}

    def load(self, numbers: dict[str, Any]) -> None:
        self.above, self.at_least = numbers["above"], numbers["at_least"]


@dataclass(frozen=True, eq=False)
class ExtremesFold(Fold["ExtremesState"]):
    """The hardest negative of each query, its candidate, and the rank of its best positive."""

    positives: QueryPositives

    @property
    def ranks(self) -> RankFold:
        """That of the best positive."""
        return RankFold(self.positives.best[:, None])

    def start(self, known: Any = None) -> ExtremesState:
        return ExtremesState(self)


class ExtremesState(State):
    """hardest: (n,) largest negative so far, −inf before the first; column: (n,) its candidate, −1 before the first."""

    def __init__(self, fold: ExtremesFold) -> None:
        self.best = fold.positives.best
        self.hardest = torch.full_like(self.best, -torch.inf)
        self.column = torch.full((len(self.best),), -1, dtype=torch.int64, device=self.best.device)
        self.ranks = fold.ranks.start()

    def add(self, block: Block) -> None:
        rows, largest = block.rows, block.max()
        better = (largest > self.hardest[rows]).nonzero()[:, 0]
        if len(better):
            self.column[rows.start + better] = block.by_query(better).argmax(1) + block.columns.start
            self.hardest[rows.start + better] = largest[better]
        self.ranks.add(block)

    def merge(self, later: ExtremesState) -> None:
        """Of equal hardest negatives the first column is taken, whichever block came before."""
        self.ranks.merge(later.ranks)
        hardest = torch.maximum(self.hardest, later.hardest)
        last = torch.iinfo(torch.int64).max
        columns = (x.column.where((x.hardest == hardest) & (x.column >= 0), last) for x in (self, later))
        first = torch.minimum(*columns)
        self.hardest, self.column = hardest, first.where(first < last, -1)

    def numbers(self) -> dict[str, Any]:
        return {"hardest": self.hardest, "column": self.column, **self.ranks.numbers()}

    def load(self, numbers: dict[str, Any]) -> None:
        self.hardest, self.column = numbers["hardest"], numbers["column"]
        self.ranks.load(numbers)
