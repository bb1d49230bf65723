"""Weights of one size on every negative above a cut that the positive alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .base import RowCounts, TileAccumulator, Undecided, undecided_near, zero_skipped
from .buffers import Buffers
from .concentration import Concentration
from .rows import QueryPositives, WholeRows


@dataclass(frozen=True)
class HingeRule:
    """w_n = 1 where s_n > s₊ − margin, else 0; the positive weighs as much as they together."""

    margin: float
    compares: ClassVar[bool] = True

    def side(self, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool) -> TileAccumulator:
        """Sums of one direction."""
        return _Number(self, known, space)

    def of(self, whole: WholeRows) -> RowCounts:
        """The number of negatives that violate the margin says it all."""
        return _Violations(self, whole)

    def cut(self, best: Tensor) -> Tensor:
        """(n,) what a negative must be above; s > −(m − s₊) is exactly m − s₊ + s > 0."""
        return (-(self.margin - best)).where(best > -torch.inf, torch.inf)


@dataclass(frozen=True, eq=False)
class _Violations(RowCounts):
    form: HingeRule
    whole: WholeRows

    @cached_property
    def number(self) -> Tensor:
        """(n,) negatives above the cut."""
        return zero_skipped(self.whole.above(self.form.cut(self.whole.known.best)).sum(1), self.whole.usable)

    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""
        return _counts(self.number, self.whole.usable, eps)

    def spread(self) -> Concentration:
        """Of equal weights."""
        return Concentration.even(self.number)


class _Number(TileAccumulator):
    """number: (n,) negatives above the cut."""

    def __init__(self, form: HingeRule, known: QueryPositives, space: Buffers) -> None:
        self.known, self.space = known, space
        self.cut = form.cut(known.best)
        self.number = torch.zeros(len(self.cut), dtype=torch.float64, device=self.cut.device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = torch.gt(tile, self.cut[rows].unsqueeze(dim), out=self.space.like(tile))
        self.number[rows] += self.space.total(truth, dim)

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        return (undecided_near(self.cut[rows], error),)

    def counts(self, eps: float) -> Counts:
        return _counts(zero_skipped(self.number, self.known.usable).to(self.cut.dtype), self.known.usable, eps)

    def state(self) -> dict[str, Any]:
        return {"number": self.number}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.number = torch.stack([state["number"] for state in states]).sum(0)


def _counts(number: Tensor, usable: Tensor, eps: float) -> Counts:
    """Of so many weights of size 1."""
    none = torch.zeros_like(number)
    above, low = (number, none) if eps < 1 else (none, number)
    return Counts(above, above, low, number, number.where(number > 0, torch.nan), skipped=~usable)
