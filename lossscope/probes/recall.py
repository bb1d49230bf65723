"""Recall: where does the best positive of a query rank among the candidates of its batch?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Effects, Probe, Reads, Statistic
from .views.view import View

_DEPTHS = (1, 5, 10)
_STATISTICS = (
    *(Statistic(f"R@{k}", f"hit_{k}", "mean", "%", is_share=True) for k in _DEPTHS),
    Statistic("medr", "rank", "floor_median", "rank"),
    Statistic("meanr", "rank", "mean", "rank"),
    Statistic("MRR", "reciprocal", "mean", "1", within_one=True),
    Statistic("ties", "tied", "sum", "queries", is_share=True),
)


@dataclass(frozen=True)
class Recall(Probe):
    """rank = 1 + #{negatives strictly above the best positive}, among the candidates of the batch.

    Queries without a positive or without a negative are left out, also if a re-ranking model did not score the pair. A
    batch is easier than a whole split; `lossscope eval` reports the recall of the split.

    Statistics:
        R@1, R@5, R@10: percentage of queries with rank ≤ k.
        medr: median rank.
        meanr: mean rank.
        MRR: mean of 1 / rank.
        ties: number of queries with a negative exactly as similar as the best positive, whose rank it does not change.
    """

    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        return {"above": Accumulator(view.extremes.above), "ties": Accumulator(view.extremes.ties)}

    def effects(self, view: View) -> Effects:
        rows, best = view.rows.whole_rows, view.extremes.positive
        above, rank = rows.above(best).double(), view.extremes.above.double()[:, None] + 1
        tied = rows.equal_to(best).double() * (view.extremes.ties == 1)[:, None]
        hits = {f"hit_{k}": -100 * above * (rank == k + 1) for k in _DEPTHS}
        return {"rank": above, "reciprocal": above * (1 / rank - 1 / (rank - 1).clamp(min=1)), **hits, "tied": tied}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        rank = accumulators["above"].value.double() + 1
        ties = accumulators["ties"].value
        hits = {f"hit_{k}": 100 * (rank <= k).double() for k in _DEPTHS}
        return {"rank": rank, "reciprocal": 1 / rank, **hits, "tied": (ties > 0).double()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS
