"""Hubness: is it always the same few candidates that are the hardest negative?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Reads, Statistic
from .views.view import View

_STATISTICS = (
    Statistic("hub_max_count", "most", "mean", "queries"),
    Statistic("hub_skewness", "skew", "mean", "1"),
    Statistic("never_hardest", "never_hardest", "mean", "1"),
    Statistic("hub_share", "hub_share", "mean", "1"),
)
_HUBS = 100  # one candidate in so many is a hub


@dataclass(frozen=True)
class Hubness:
    """N_c = #{queries whose hardest negative is candidate c}, over the queries of a batch that are not skipped.

    N_max: the largest N_c. N_skew = mean (N − N̄)³ / σ_N³, population moments over all c candidates; NaN where all are
    chosen equally often. never: share of candidates with N_c = 0. hub_share: share of queries whose hardest negative
    is among the 1 % most chosen candidates (c // 100, one at least). NaN where every query was skipped.
    Source: Radovanović et al. 2010, k-occurrences and their skewness, here of the hardest negative instead of the k
    nearest neighbours.
    """

    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    needs_objective: ClassVar[bool] = False
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        k, c = view.shape.batches, view.shape.candidates
        column = view.extremes.column.view(k, -1)
        taking_part = (column >= 0) & ~view.skipped.view(k, -1)
        chosen = column.new_zeros(k, c)
        chosen.scatter_add_(1, column.clamp(min=0), taking_part.to(chosen.dtype))
        return {"chosen": Accumulator(chosen, "sum")}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        chosen = accumulators["chosen"].value.double()
        number = chosen.sum(1)
        apart = chosen - chosen.mean(1, keepdim=True)
        hubs = chosen.topk(max(1, chosen.shape[1] // _HUBS), dim=1).values.sum(1)
        columns = {
            "most": chosen.amax(1),
            "skew": apart.pow(3).mean(1) / apart.square().mean(1).pow(1.5),
            "never_hardest": (chosen == 0).double().mean(1),
            "hub_share": hubs / number,
        }
        return {name: value.where(number > 0, torch.nan) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        """Hardest negatives are there whatever weighs them."""
