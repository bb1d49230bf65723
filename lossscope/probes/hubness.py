"""Hubness: are a few candidates the hardest negative of most queries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.hub_counts import share_of_hubs, skewness
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View

_STATISTICS = (
    Statistic("hub_max_count", "most", "mean", "queries"),
    Statistic("hub_skewness", "skew", "mean", "1"),
    Statistic("never_hardest", "never_hardest", "mean", "1", within_one=True),
    Statistic("hub_share", "hub_share", "mean", "1", within_one=True),
)


@dataclass(frozen=True)
class Hubness(Probe):
    """N_c = #{queries whose hardest negative is candidate c}, over the queries of a batch that are not skipped.

    NaN if all queries are skipped.

    Statistics:
        hub_max_count: the largest N_c.
        hub_skewness: mean (N − N̄)³ / σ_N³, population moments over all candidates; NaN where all N_c are equal.
        never_hardest: share of candidates with N_c = 0.
        hub_share: share of queries whose hardest negative is one of the 1 % of candidates with the largest N_c
            (c // 100 of c candidates, at least one).

    Source: Radovanović et al. 2010, k-occurrences and their skewness; here the hardest negative replaces the k nearest
    neighbours.
    """

    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        k, c = view.shape.batches, view.shape.candidates
        column = view.extremes.column.view(k, -1)
        usable = (column >= 0) & ~view.skipped.view(k, -1)
        number = column.new_zeros(k, c)
        number.scatter_add_(1, column.clamp(min=0), usable.to(number.dtype))
        return {"number": Accumulator(number, "sum")}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        number = accumulators["number"].value.double()
        queries = number.sum(1)
        columns = {
            "most": number.amax(1),
            "skew": skewness(number),
            "never_hardest": (number == 0).double().mean(1),
            "hub_share": share_of_hubs(number),
        }
        return {name: value.where(queries > 0, torch.nan) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS
