"""COCOS: how many samples carry the gradient of a query, and how much weight do they have?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.types import Convention, WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import require_unit

from .base import POSITIVE, Accumulator, Accumulators, Effects, Probe, Reads, Statistic
from .views.view import View

_STATISTICS = {
    "C_q": Statistic("C_q", "count", "mean_nonzero", "samples"),
    "C_q_all": Statistic("C_q_all", "count", "mean", "samples"),
    "C_B": Statistic("C_B", "count", "sum", "samples"),
    "C_0": Statistic("C_0", "count", "zeros", "queries"),
    "C_neg": Statistic("C_neg", "count", "mean", "samples"),
    "W_neg": Statistic("W_neg", "mass_high", "mean", "weight"),
    "W_low": Statistic("W_low", "mass_below", "mean", "weight"),
    "W_pos": Statistic("W_pos", "positive", "mean", "weight"),
    "N_eff": Statistic("N_eff", "n_eff", "mean", "samples"),
    "skipped": Statistic("skipped", "skipped", "true", "queries"),
}
_CURVE = Statistic("curve", "curve", "curve", "samples")


@dataclass(frozen=True)
class Cocos(Probe):
    """count_q = #{negatives whose counted weight > eps}, and the weight above and below eps, for every query.

    The `unit` of counted weights is `paper`, the scale of the objective's own paper, see the objective; `relative`, |W|
    divided by the saturated weight (of a query with two candidates at s₊ = −1, s₋ = +1, measured), so that all losses
    are on one scale; or `cosine`, |W| itself. Where none is named, objectives of several names are counted as
    `relative`, those of one name as `paper`. A loss that no paper counts, such as your own, is always `relative`.

    A batch counts in a mean by the number of its queries, also in that of C_q and N_eff, which not every query has;
    C_B, C_0 and skipped are means over full batches. Under `released` every batch counts alike.

    Statistics:
        C_q: negatives (smoothap: triplets) above eps, mean over queries with any (E4).
        C_q_all: negatives (smoothap: triplets) above eps, mean over all queries.
        C_B: negatives with weight above eps, per batch.
        C_0: queries of a batch without any negative above eps.
        C_neg: negatives with weight above eps, per query.
        W_neg: summed weight of the negatives above eps, per query.
        W_low: summed weight of all other negatives, per query.
        W_pos: weight of the positive, per query.
        N_eff: effective number of negatives, (Σ w)² / Σ w², per query with any weight.
        skipped: queries of a batch without a positive or without a negative.

    Raises InputError for eps < 0 or a convention that the objective does not support.
    Source: Bleeker & de Rijke 2022, section 4: C_q, C_B, C_0, C_neg, W_neg and W_pos; N_eff: Kish 1965.
    """

    eps: float = 0.01  # threshold: a weight strictly above it counts
    convention: Convention = "corrected"  # counting convention: corrected, released or text
    curve: bool = False  # also count for every eps of a logarithmic scale, from whole rows
    unit: WeightUnit | None = None  # unit of weights and eps: paper (of one objective), relative (of several) or cosine
    needs_objective: ClassVar[bool] = True
    cheap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {self.eps}")

    @property
    def reads(self) -> frozenset[Reads]:  # type: ignore[override]
        """`counts`, and `rows` for the curve."""
        return frozenset({"counts", "rows"} if self.curve else {"counts"})

    def tile(self, view: View) -> Accumulators:
        counts = view.counts(self.eps, self.convention, self.unit)
        columns = {
            "count": counts.above,
            "mass_high": counts.mass_above,
            "mass_below": counts.mass_below,
            "positive": counts.positive,
            "n_eff": counts.n_eff,
        }
        if self.curve:
            from .views.eps_histogram import eps_histogram

            columns["curve"] = eps_histogram(view.counted_weights(self.convention, self.unit))
        return {name: Accumulator(value) for name, value in columns.items()}

    def effects(self, view: View) -> Effects | None:
        effects = view.effects(self.eps, self.convention, self.unit)
        if effects is None:
            return None
        return {
            "count": effects.above,
            POSITIVE + "count": effects.any_above,
            "mass_high": effects.mass_above,
            "mass_below": effects.mass_below,
            "positive": effects.positive,
            "n_eff": effects.n_eff,
        }

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        assert objective is not None, "cocos needs an objective"
        statistics = tuple(_STATISTICS[name] for name in (*objective.traits.statistics, "N_eff", "skipped"))
        return (*statistics, _CURVE) if self.curve else statistics

    def check(self, objective: Objective) -> None:
        objective.require(self.convention)
        require_unit(objective, self.unit, self.convention)
