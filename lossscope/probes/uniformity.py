"""Uniformity: how evenly are the queries distributed over the unit sphere?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View


@dataclass(frozen=True)
class Uniformity(Probe):
    """ln mean_{i≠j} exp(−2 |x_i − x_j|²) over the queries x of a batch, of unit length; in [−8, 0], lower is more even.

    0 if all queries are equal; −4 + O(1/d) for random directions. An item that is in the batch twice counts as two
    queries. NaN for a batch of one query. A view adds the pairs of its queries with all queries of the batch, so that
    the views of a batch together have all pairs.

    Raises InputError where the source has similarities only.
    Source: Wang & Isola 2020, L_uniform with t = 2.
    """

    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"embeddings"})

    def tile(self, view: View) -> Accumulators:
        queries = normalise(view.embeddings()[0])
        all_queries = queries if view.rows.all_queries is None else normalise(view.rows.all_queries)
        (k, q, _), n = queries.shape, all_queries.shape[1]
        potential = torch.baddbmm(queries.new_full((), -4), queries, all_queries.transpose(1, 2), alpha=4).exp_()
        near = potential.sum(2).double().sum(1) - q  # a query is at distance 0 from itself
        pairs = near.new_full((k,), q * (n - 1))
        return {"near": Accumulator(near, "sum"), "pairs": Accumulator(pairs, "sum")}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        pairs = accumulators["pairs"].value
        mean = accumulators["near"].value / pairs
        return {"uniformity": mean.clamp(min=torch.finfo(mean.dtype).tiny).log().where(pairs > 0, torch.nan)}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (Statistic("uniformity", "uniformity", "mean", "1"),)
