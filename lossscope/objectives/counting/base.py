"""How the counts of a row follow from its similarities and a few sums, so that a row can be counted in pieces.

A row is met as tiles of its negatives; its positives are known before the first tile. A `TileAccumulator` gathers what
one direction of a batch needs: sums that are merged in any order, and the few cells that can still count. Shapes: n
queries, p positives of one (padded); a tile is (r, w), its queries are the rows (dim 1) or the columns (dim 0).
Whether a cell counts is decided from its similarity alone, s > cut, with the cut in float64 from sums in float64 and
rounded to the type of S once, so that tiles of any shape and any number of processes decide alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .buffers import Buffers
from .concentration import Concentration
from .rows import QueryPositives, WholeRows

Undecided = tuple[Tensor, Tensor | None]  # (r,) lowest and, if any, highest rounded cell that is undecided


class RowCounts(ABC):
    """What an objective says of whole rows."""

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""

    def spread(self) -> Concentration | None:
        """How evenly the weight is spread; None where only the weights one by one can tell."""
        return None


class TileAccumulator(ABC):
    """Sums of n queries of one direction under one objective, made tile by tile. Cells of a tile that are no negatives
    are −inf."""

    @abstractmethod
    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Meet a tile; `rows` are the queries that it is about."""

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        """Cells of a tile, rounded to bfloat16 after an error of at most (r,), that must be exact before `add`."""
        raise NotImplementedError("every cell must be exact")

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Meet a tile again, once every tile was met, where `again` asks for it."""
        raise NotImplementedError("one look is enough")

    @property
    def again(self) -> bool:
        """Whether the counts need another look at every tile."""
        return False

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """Counts of all n queries; eps: one of those it was begun with."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What other processes need of it."""

    @abstractmethod
    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        """Become the sum of the sides of all processes, each of which met other tiles."""

    def merge_again(self, states: Sequence[dict[str, Any]]) -> None:
        """The same of what was found at the second look."""
        raise NotImplementedError("one look is enough")


class CountingRule(Protocol):
    """A frozen dataclass of the numbers that a family of objectives differ in.

    compares: whether cells are only compared, so that those far from what they are compared with may be inexact.
    """

    compares: ClassVar[bool]

    def side(self, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool) -> TileAccumulator:
        """Sums to be made tile by tile. collect: keep cells that can still count, so that one look may do."""
        ...

    def of(self, whole: WholeRows) -> RowCounts:
        """The same of whole rows, with the same decisions."""
        ...


def undecided_near(cut: Tensor, error: Tensor) -> Undecided:
    """Cells that may be on either side of a cut, (r,). To round to bfloat16 keeps the order, so bounds are rounded."""
    return _rounded(cut - error), _rounded(cut + error)


def undecided_maximum(tile: Tensor, dim: int, met: Tensor, error: Tensor) -> Undecided:
    """Cells that may be the largest of the tile and larger than those met before, (r,), which were exact."""
    highest = tile.amax(dim)
    first = highest - 2.0**-8 * highest.abs() - 2 * error
    return _rounded(torch.maximum(first.where(highest > -torch.inf, -torch.inf), met - error)), None


def _rounded(bound: Tensor) -> Tensor:
    return bound.bfloat16().float().clamp(min=torch.finfo(torch.float32).min)  # −inf is no negative


@dataclass(frozen=True, eq=False)
class InOneTile(RowCounts):
    """Whole rows counted as one tile: the same decisions as tile by tile."""

    form: CountingRule
    whole: WholeRows

    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""
        side = self.form.side(self.whole.known, [eps], Buffers(), collect=False)
        rows = slice(0, len(self.whole.S))
        side.add(self.whole.negatives, rows, 1)
        if side.again:
            side.recount(self.whole.negatives, rows, 1)
        return side.counts(eps)


def zero_skipped(values: Tensor, usable: Tensor) -> Tensor:
    """(n,) values, 0 in rows that are skipped."""
    return values.where(usable, 0.0)
