"""Effective rank: over how many directions are the queries distributed?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.singular_values import effective_rank, singular_values
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View


@dataclass(frozen=True)
class EffectiveRank(Probe):
    """exp(−Σ p_i ln p_i), p_i = σ_i / Σ σ, of the singular values σ of the queries of a batch, (q, d), not centred.

    It lies between 1 (all on a line) and min(q, d), so compare only batches of the same size. σ² are the eigenvalues of
    the smaller of X X' and X' X in float64; values that may be rounding errors (σ² ≤ max σ² · n · 2⁻⁵²) count as 0.
    Views of a batch add up their X' X. NaN for vectors of zeros.

    Raises InputError if the source has similarities only.
    Source: Garrido et al. 2023 (RankMe), who add 1e-7 to p; Roy & Vetterli 2007, the effective rank.
    """

    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"embeddings"})
    needs_all_queries: ClassVar[bool] = False  # a view of some queries needs no embeddings of the rest

    def tile(self, view: View) -> Accumulators:
        X = view.embeddings()[0].double()
        if view.shape.has_all_queries and X.shape[1] < X.shape[2]:
            X = X.transpose(1, 2)
        return {"products": Accumulator(torch.bmm(X.transpose(1, 2), X), "sum")}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        return {"effective_rank": effective_rank(singular_values(accumulators["products"].value))}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (Statistic("effective_rank", "effective_rank", "mean", "1"),)
