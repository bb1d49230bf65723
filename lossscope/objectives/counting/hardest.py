"""Counting rule of objectives that weigh the hardest negative and the positive alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountedWeights, CountEffects, Counts, HasCountedWeights
from lossscope.core.row_ops import row_argmax
from lossscope.core.similarity import Mask

from .block import Block
from .concentration import Concentration
from .fold import CountFold, Keep, RowCounts
from .rows import QueryPositives, WholeRows


@dataclass(frozen=True)
class HardestNegativeRule:
    """w depends on (s₊, max_n s_n) alone: the objective is evaluated on rows of these two."""

    objective: HasCountedWeights

    def fold(self, positives: QueryPositives, eps: Sequence[float], keep: Keep = "some") -> CountFold:
        """Return what is kept: the hardest negative."""
        return _HardestFold(self.objective, positives.best)

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, from their hardest negative and their best positive."""
        return _HardestRowCounts(self.objective, whole)


@dataclass(frozen=True, eq=False)
class _HardestRowCounts(RowCounts):
    objective: HasCountedWeights
    whole: WholeRows

    @cached_property
    def counted_weights(self) -> CountedWeights:
        """The weights of the two."""
        return _count_two_columns(self.objective, self.whole.query_positives.best, self.whole.hardest)

    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""
        return _counts(self.counted_weights, eps)

    def concentration(self) -> Concentration:
        """Return that of one weight, or of none."""
        weight = _negative_weight(self.counted_weights)
        return Concentration.uniform((weight > 0).to(weight.dtype))

    def effects(self, eps: float) -> CountEffects:
        """Return the effect of each candidate: without the hardest negative, the second hardest is in its place."""
        whole = self.whole
        column = row_argmax(whole.negatives)[:, None]
        second = whole.negatives.scatter(1, column, -torch.inf).amax(1)
        now = self.counts(eps)
        without = _counts(_count_two_columns(self.objective, whole.query_positives.best, second), eps)

        def effect(name: str) -> Tensor:
            difference = getattr(now, name) - getattr(without, name)
            difference = difference.where(~getattr(now, name).isnan(), 0.0).where(whole.usable, 0.0)
            return torch.zeros_like(whole.negatives).scatter_(1, column, difference[:, None])

        above = effect("above")
        names = ("mass_above", "mass_below", "positive", "n_eff")
        return CountEffects(above, above, *(effect(name) for name in names))


class _HardestFold(CountFold):
    """hardest: (n,) similarity of the hardest negative so far."""

    kept = ("hardest",)

    def __init__(self, objective: HasCountedWeights, best: Tensor) -> None:
        self.objective, self.best = objective, best  # (n,) best positive
        self.begin()

    def begin(self, known: Any = None) -> None:
        self.hardest = torch.full_like(self.best, -torch.inf)

    def add(self, block: Block) -> None:
        self.hardest[block.rows] = torch.maximum(self.hardest[block.rows], block.max())

    def merge(self, later: _HardestFold) -> None:
        self.hardest = torch.maximum(self.hardest, later.hardest)

    def counts(self, eps: float) -> Counts:
        return _counts(_count_two_columns(self.objective, self.best, self.hardest), eps)


def _count_two_columns(objective: HasCountedWeights, best: Tensor, hardest: Tensor) -> CountedWeights:
    """Return the objective's counted weights of rows of two entries, the best positive and the hardest negative."""
    S = torch.stack([best, hardest], 1)
    valid = -torch.inf < S
    if bool(valid.all()):
        return objective.counted_weights(S, _two_column_mask(len(S), S.device))
    return objective.counted_weights(S.where(valid, 0.0), Mask(_two_column_mask(len(S), S.device).match, valid))


def _negative_weight(counted: CountedWeights) -> Tensor:
    """(n,) weight on the hardest negative."""
    return counted.weights[:, 0, 1]


def _counts(counted: CountedWeights, eps: float) -> Counts:
    """Return the counts of one weight a row."""
    weight = _negative_weight(counted)
    above = (weight > eps).to(weight.dtype)
    n_eff = torch.ones_like(weight).where(weight > 0, torch.nan)
    high = weight * above
    return Counts(above, high, weight - high, counted.positive, n_eff, counted.skipped)


@lru_cache(maxsize=8)
def _two_column_mask(rows: int, device: torch.device) -> Mask:
    """Return the mask of rows of two entries, the first being the positive; its properties are computed once."""
    with torch.inference_mode(False):
        match = torch.zeros(rows, 2, dtype=torch.bool, device=device)
        match[:, 0] = True
        mask = Mask(match, torch.ones_like(match))
        _ = (
            mask.negative_bias,
            mask.number_usable,
            mask.all_valid,
            mask.first_positive,
            mask.first_row_with_two_positives,
        )
        return mask
