"""Similarity: how similar are positives and hardest negatives, and how far are they apart?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Reads, Reducer, Statistic
from .views.view import View

_OVER: dict[str, Reducer] = {"": "mean", "_q10": "q10", "_q50": "q50", "_q90": "q90"}
_STATISTICS = (
    *(
        Statistic(f"{name}{suffix}", column, reducer, "similarity")
        for name, column in (("s_pos", "positive"), ("s_neg", "hardest"), ("margin", "margin"))
        for suffix, reducer in _OVER.items()
    ),
    Statistic("inverted", "inverted", "mean", "1"),
)


@dataclass(frozen=True)
class Similarity:
    """s₊ of the best positive, s_n of the hardest negative, margin = s₊ − s_n, for every query.

    Columns: positive, hardest, margin (similarity units, those of S) and inverted, 1 where margin < 0 and else 0; NaN
    where a query has no positive or no negative. Statistics: mean, and 10, 50, 90 % quantiles (nearest rank), over the
    queries of a batch; inverted is the share of queries that rank a negative above every positive.
    """

    axis: ClassVar[Axis] = "query"
    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    needs_objective: ClassVar[bool] = False
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        extremes = view.extremes
        return {"positive": Accumulator(extremes.positive), "hardest": Accumulator(extremes.hardest)}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        found = {name: part.value for name, part in accumulators.items()}
        margin = found["positive"] - found["hardest"]
        inverted = (margin < 0).to(margin.dtype).where(~margin.isnan(), torch.nan)
        return {**found, "margin": margin, "inverted": inverted}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        """Similarities are there whatever weighs them."""
