"""Influence: which candidates make the update of a query, and which act against it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Probe, Reads, Statistic
from .views.view import View

_STATISTICS = (
    *(Statistic(f"share_{name}", f"share_{name}", "q50", "1") for name in ("pos", "neg", "hardest")),
    *(Statistic(name, name, "q50", "1") for name in ("opposed", "largest")),
    Statistic("cancellation", "cancellation", "mean", "1"),
    Statistic("undirected", "undirected", "mean", "1", within_one=True),
)
_LEAST = 1e-3  # cancellation: below it shares may be rounding errors


@dataclass(frozen=True)
class Influence(Probe):
    """share_c = W_c (t_c·g) / |g|², g = dL/dv = Σ_c W_c t_c, for every query v; the shares of a query sum to 1.

    The share of a candidate is its part of the update. A candidate with a negative share acts against the update, so
    other shares may be above 1. Queries with a cancellation of at least 0.001 have shares. The statistics are medians
    over queries: a few queries whose terms nearly cancel would dominate a mean.

    Statistics:
        share_pos, share_neg: share of all positives, share of all negatives.
        share_hardest: share of the hardest negative.
        opposed: sum of the shares below 0.
        largest: the largest share.
        cancellation: |g| / Σ_c |W_c|, for unit vectors in [0, 1]: 1 where no terms cancel, 0 where all do; NaN without
            weight.
        undirected: share of queries with a cancellation below 0.001, such as those whose hardest negative is a copy of
            the positive.

    Raises InputError where the source has similarities only.
    """

    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "embeddings", "extremes"})
    needs_objective: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        _, candidates = view.embeddings()
        W = view.W
        W = W / W.abs().amax(1, keepdim=True)  # so that squares of small weights do not underflow
        W = W / W.abs().sum(1, keepdim=True)
        g = torch.bmm(W.reshape(len(candidates), -1, W.shape[1]), candidates)
        length = g.norm(dim=2).flatten()
        scale = (1 / length.square()).where(length >= _LEAST, torch.nan)
        shares = torch.bmm(g, candidates.transpose(1, 2)).flatten(0, 1).mul_(W).mul_(scale[:, None])
        positive = (shares * view.rows.mask.positives).sum(1)
        column = view.extremes.column
        hardest = shares.gather(1, column.clamp(min=0)[:, None])[:, 0]
        columns = {
            "share_pos": positive,
            "share_neg": 1 - positive,
            "share_hardest": hardest.where(column >= 0, torch.nan),
            "opposed": shares.clamp(max=0).sum(1),
            "largest": shares.amax(1),
            "cancellation": length,
            "undirected": (length < _LEAST).to(W.dtype).where(~length.isnan(), torch.nan),
        }
        return {name: Accumulator(value) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS
