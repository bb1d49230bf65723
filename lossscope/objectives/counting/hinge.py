"""Counting rule of a hinge: equal weights on every negative above a cut that depends on the positive alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountEffects, Counts

from .block import Block
from .concentration import Concentration
from .fold import CountFold, Keep, RowCounts, fill_skipped
from .rows import QueryPositives, WholeRows


@dataclass(frozen=True)
class HingeRule:
    """w_n = 1 where s_n > s₊ − margin, else 0; the weight on the positive is their sum."""

    margin: float

    def fold(self, positives: QueryPositives, eps: Sequence[float], keep: Keep = "some") -> CountFold:
        """Return what is kept: the number of violations."""
        return _HingeFold(positives, self.cut(positives.best))

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


class _HingeFold(CountFold):
    """number: (n,) negatives above the cut."""

    kept = ("number",)

    def __init__(self, positives: QueryPositives, cut: Tensor) -> None:
        self.positives, self.cut = positives, cut  # (n,)
        self.begin()

    def begin(self, known: Any = None) -> None:
        self.number = torch.zeros(len(self.cut), dtype=torch.float64, device=self.cut.device)

    def add(self, block: Block) -> None:
        self.number[block.rows] += block.sum(block.above(self.cut[block.rows]))

    def merge(self, later: _HingeFold) -> None:
        self.number = self.number + later.number

    def counts(self, eps: float) -> Counts:
        usable = self.positives.usable
        return _count_ones(fill_skipped(self.number, usable).to(self.cut.dtype), usable, eps)


def _count_ones(number: Tensor, usable: Tensor, eps: float) -> Counts:
    """Return the counts of `number` weights of size 1, (n,)."""
    none = torch.zeros_like(number)
    above, low = (number, none) if eps < 1 else (none, number)
    return Counts(above, above, low, number, number.where(number > 0, torch.nan), skipped=~usable)
