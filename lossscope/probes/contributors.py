"""Contributors: over how many negatives is the weight of a query distributed, without any threshold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.types import Convention
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Probe, Reads, Statistic
from .views.view import View

_STATISTICS = (
    Statistic("N_eff", "n_eff", "mean", "samples"),
    Statistic("perplexity", "perplexity", "mean", "samples"),
    Statistic("top1", "top1", "mean", "1", within_one=True),
    Statistic("top5", "top5", "mean", "1", within_one=True),
)


@dataclass(frozen=True)
class Contributors(Probe):
    """N_eff = 1 / Σ p², perplexity = exp(−Σ p ln p), top1, top5 = sum of the largest p, where p = w / Σ w.

    w are the weights on negatives that the objective's paper thresholds (`counted_weights`); with several positives,
    each pair of a positive and a candidate has a weight. NaN for a query without weight, which is left out. Weights are
    divided by their sum before squaring, as the small weights of well-trained models (1e-30) would underflow.

    Statistics:
        N_eff, perplexity: effective number of weights; n for n equal weights, 1 for a single one.
        top1: share of the largest weight.
        top5: share of the five largest weights.

    Raises InputError for a convention that the objective does not support.
    Source: N_eff: Kish 1965 (of weighted samples); exp(entropy): Hill 1973, the number of order 1, N_eff that of 2.
    """

    convention: Convention = "corrected"  # counting convention: corrected, released or text
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows"})
    needs_objective: ClassVar[bool] = True
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        concentration = view.concentration(self.convention)
        columns = {
            "n_eff": concentration.n_eff,
            "perplexity": concentration.perplexity,
            "top1": concentration.top1,
            "top5": concentration.top5,
        }
        return {name: Accumulator(value) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        objective.require(self.convention)
