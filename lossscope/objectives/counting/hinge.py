"""Counting rule of a hinge: equal weights on every negative above a cut that depends on the positive alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .base import RowCounts, TileAccumulator, fill_skipped
from .buffers import Buffers
from .concentration import Concentration
from .effects import CountEffects
from .rows import QueryPositives, WholeRows


@dataclass(frozen=True)
class HingeRule:
    """w_n = 1 where s_n > s₊ − margin, else 0; the weight on the positive is their sum."""

    margin: float

    def accumulator(
        self, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> TileAccumulator:
        """Return an accumulator of the number of violations."""
        return _HingeAccumulator(self, positives, buffers)

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, from their number of violations."""
        return _HingeRowCounts(self, whole)

    def cut(self, best: Tensor) -> Tensor:
        """(n,) bound that a negative must exceed; s > −(m − s₊) is exactly m − s₊ + s > 0."""
        return (-(self.margin - best)).where(best > -torch.inf, torch.inf)


@dataclass(frozen=True, eq=False)
class _HingeRowCounts(RowCounts):
    rule: HingeRule
    whole: WholeRows

    @cached_property
    def number(self) -> Tensor:
        """(n,) number of negatives above the cut."""
        return fill_skipped(self.whole.above(self.rule.cut(self.whole.query_positives.best)).sum(1), self.whole.usable)

    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""
        return _count_ones(self.number, self.whole.usable, eps)

    def concentration(self) -> Concentration:
        """Return that of equal weights."""
        return Concentration.uniform(self.number)

    def effects(self, eps: float) -> CountEffects:
        """Return the effect of each candidate: 1 of a violation, whatever the other candidates are."""
        cut = self.rule.cut(self.whole.query_positives.best)
        truth = self.whole.above(cut).clone() * self.whole.usable[:, None]
        only = truth * (self.number == 1)[:, None]
        none = torch.zeros_like(truth)
        above, low = (truth, none) if eps < 1 else (none, truth)
        return CountEffects(above, only if eps < 1 else none, above, low, truth, truth.where(only == 0, torch.nan))


class _HingeAccumulator(TileAccumulator):
    """number: (n,) negatives above the cut."""

    def __init__(self, rule: HingeRule, positives: QueryPositives, buffers: Buffers) -> None:
        self.positives, self.buffers = positives, buffers
        self.cut = rule.cut(positives.best)
        self.number = torch.zeros(len(self.cut), dtype=torch.float64, device=self.cut.device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = torch.gt(tile, self.cut[rows].unsqueeze(dim), out=self.buffers.empty_like(tile))
        self.number[rows] += self.buffers.sum(truth, dim)

    def counts(self, eps: float) -> Counts:
        number = fill_skipped(self.number, self.positives.usable).to(self.cut.dtype)
        return _count_ones(number, self.positives.usable, eps)

    def state(self) -> dict[str, Any]:
        return {"number": self.number}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.number = torch.stack([state["number"] for state in states]).sum(0)


def _count_ones(number: Tensor, usable: Tensor, eps: float) -> Counts:
    """Return the counts of `number` weights of size 1, (n,)."""
    none = torch.zeros_like(number)
    above, low = (number, none) if eps < 1 else (none, number)
    return Counts(above, above, low, number, number.where(number > 0, torch.nan), skipped=~usable)
