"""Contributors: over how many negatives is the weight of a query spread, without any threshold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.core.counts import Convention
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Reads, Statistic
from .views.view import View

_STATISTICS = (
    Statistic("N_eff", "n_eff", "mean", "samples"),
    Statistic("perplexity", "perplexity", "mean", "samples"),
    Statistic("top1", "top1", "mean", "1"),
    Statistic("top5", "top5", "mean", "1"),
)


@dataclass(frozen=True)
class Contributors:
    """N_eff = 1 / Σ p², perplexity = exp(−Σ p ln p), top1, top5 = sum of the largest p, where p = w / Σ w.

    w: the weights that the objective's own paper thresholds (`counted_weights`), so of the negatives; several positives
    have entries of their own, one for each pair of them with a candidate. N_eff and perplexity (samples) are n for n
    equal weights and 1 for a single one; top1 and top5 are shares. NaN for a query without weight, which is left out.
    p is taken before it is squared: weights of 1e-30, which well-trained models have, must not vanish.
    Source: N_eff: Kish 1965 (of weighted samples); exp(entropy): Hill 1973, the number of order 1, N_eff that of 2.
    Raises InputError for a convention the objective does not know.
    """

    convention: Convention = "corrected"
    axis: ClassVar[Axis] = "query"
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows"})
    needs_objective: ClassVar[bool] = True
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        spread = view.spread(self.convention)
        columns = {
            "n_eff": spread.n_eff,
            "perplexity": spread.perplexity,
            "top1": spread.top1,
            "top5": spread.top5,
        }
        return {name: Accumulator(value) for name, value in columns.items()}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        return {name: part.value for name, part in accumulators.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        objective.require(self.convention)
