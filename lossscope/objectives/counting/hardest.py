"""Weights on the hardest negative and the positive alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, Counts, HasCounted
from lossscope.core.similarity import Mask

from .base import RowCounts, TileAccumulator, Undecided, undecided_maximum
from .buffers import Buffers
from .concentration import Concentration
from .rows import QueryPositives, WholeRows


@dataclass(frozen=True)
class HardestNegativeRule:
    """w depends on (s₊, max_n s_n) only: the objective is asked about rows of these two."""

    objective: HasCounted
    compares: ClassVar[bool] = True

    def side(self, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool) -> TileAccumulator:
        """Sums of one direction."""
        return _Top(self.objective, known)

    def of(self, whole: WholeRows) -> RowCounts:
        """The hardest negative and the best positive say it all."""
        return _Pair(self.objective, whole)


@dataclass(frozen=True, eq=False)
class _Pair(RowCounts):
    objective: HasCounted
    whole: WholeRows

    @cached_property
    def counted_weights(self) -> CountedWeights:
        """The weights of the two."""
        return _counted(self.objective, self.whole.known.best, self.whole.hardest)

    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""
        return _counts(self.counted_weights, eps)

    def spread(self) -> Concentration:
        """Of one weight, if any."""
        weight = _weight(self.counted_weights)
        return Concentration.even((weight > 0).to(weight.dtype))


class _Top(TileAccumulator):
    """top: (n,) the hardest negative."""

    def __init__(self, objective: HasCounted, known: QueryPositives) -> None:
        self.objective, self.known = objective, known
        self.top = torch.full_like(known.best, -torch.inf)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        self.top[rows] = torch.maximum(self.top[rows], tile.amax(dim))

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        return (undecided_maximum(tile, dim, self.top[rows], error),)

    def counts(self, eps: float) -> Counts:
        return _counts(_counted(self.objective, self.known.best, self.top), eps)

    def state(self) -> dict[str, Any]:
        return {"top": self.top}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.top = torch.stack([state["top"] for state in states]).amax(0)


def _counted(objective: HasCounted, best: Tensor, hardest: Tensor) -> CountedWeights:
    """The objective's weights of rows of two, the best positive and the hardest negative."""
    S = torch.stack([best, hardest], 1)
    valid = -torch.inf < S
    if bool(valid.all()):
        return objective.counted_weights(S, _twos(len(S), S.device))
    return objective.counted_weights(S.where(valid, 0.0), Mask(_twos(len(S), S.device).match, valid))


def _weight(counted: CountedWeights) -> Tensor:
    """(n,) the weight on the hardest negative."""
    return counted.weights[:, 0, 1]


def _counts(counted: CountedWeights, eps: float) -> Counts:
    """Of one weight."""
    weight = _weight(counted)
    above = (weight > eps).to(weight.dtype)
    n_eff = torch.ones_like(weight).where(weight > 0, torch.nan)
    high = weight * above
    return Counts(above, high, weight - high, counted.positive, n_eff, counted.skipped)


@lru_cache(maxsize=8)
def _twos(rows: int, device: torch.device) -> Mask:
    """The mask of rows of two, the first of which is the positive; kept with all that is derived from it."""
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
