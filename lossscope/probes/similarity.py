"""Similarity: how similar are positives and hardest negatives, and how large is the margin between them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.row_ops import row_argmax
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Effects, Probe, Reads, ReducerName, Statistic
from .views.view import View

_OVER: dict[str, ReducerName] = {"": "mean", "_q10": "q10", "_q50": "q50", "_q90": "q90"}
_STATISTICS = (
    *(
        Statistic(f"{name}{suffix}", column, reducer, "similarity")
        for name, column in (("s_pos", "positive"), ("s_neg", "hardest"), ("margin", "margin"))
        for suffix, reducer in _OVER.items()
    ),
    Statistic("inverted", "inverted", "mean", "1", is_share=True, within_one=True),
)


@dataclass(frozen=True)
class Similarity(Probe):
    """s₊ of the best positive, s_n of the hardest negative, margin = s₊ − s_n, for every query.

    All are in the unit of S; NaN if a query has no positive or no negative. The statistics are the mean over the
    queries of a batch, and the quantiles at 10, 50 and 90 % (nearest rank).

    Statistics:
        s_pos: similarity of the best positive.
        s_neg: similarity of the hardest negative.
        margin: s_pos − s_neg.
        inverted: share of queries with a negative margin, which rank a negative above every positive.
    """

    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        extremes = view.extremes
        return {"positive": Accumulator(extremes.positive), "hardest": Accumulator(extremes.hardest)}

    def effects(self, view: View) -> Effects:
        rows, positive = view.rows.whole_rows, view.extremes.positive[:, None]
        column = row_argmax(rows.negatives)[:, None]
        second = rows.negatives.scatter(1, column, -torch.inf).amax(1, keepdim=True)
        difference = (rows.hardest[:, None] - second).where(second > -torch.inf, torch.nan)
        change = ((positive < rows.hardest[:, None]).float() - (positive < second).float()).to(difference.dtype)

        def on_hardest(x: Tensor) -> Tensor:
            return torch.zeros_like(rows.negatives).scatter_(1, column, x.where(rows.usable[:, None], 0.0))

        hardest = on_hardest(difference)
        return {"hardest": hardest, "margin": -hardest, "inverted": on_hardest(change)}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        columns = {name: part.value for name, part in accumulators.items()}
        margin = columns["positive"] - columns["hardest"]
        inverted = (margin < 0).to(margin.dtype).where(~margin.isnan(), torch.nan)
        return {**columns, "margin": margin, "inverted": inverted}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS
