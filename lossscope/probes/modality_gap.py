"""Modality gap: how far is the mean image embedding from the mean caption embedding?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View

_STATISTICS = (
    Statistic("gap", "gap", "mean", "norm"),
    Statistic("gap_cosine", "cosine", "mean", "1"),
)


@dataclass(frozen=True)
class ModalityGap(Probe):
    """gap = |mean v − mean t|, cosine of the two means, over the queries v and candidates t of a batch, of unit length.

    Both directions of a batch give the same numbers.

    Statistics:
        gap: |mean v − mean t|, in [0, 2].
        gap_cosine: cosine of the two means; NaN if either is zero.

    Raises InputError where the source has similarities only.
    Source: Liang et al. 2022, section 2.1 (Δ_gap), there over a data set; small batches add the noise of their means.
    """

    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"embeddings"})
    compares_sides: ClassVar[bool] = True  # so one set has no gap
    needs_all_queries: ClassVar[bool] = False  # a view of some queries needs no embeddings of the rest

    def tile(self, view: View) -> Accumulators:
        queries, candidates = (normalise(side) for side in view.embeddings())
        number = queries.new_full((len(queries), 1), queries.shape[1])
        return {
            "queries": Accumulator(queries.sum(1).double(), "sum"),
            "number": Accumulator(number.double(), "sum"),
            "candidates": Accumulator(candidates.mean(1).double(), "max"),  # each view has all candidates
        }

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        first = accumulators["queries"].value / accumulators["number"].value
        second = accumulators["candidates"].value
        lengths = first.norm(dim=1) * second.norm(dim=1)
        return {"gap": (first - second).norm(dim=1), "cosine": (first * second).sum(1) / lengths}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS
