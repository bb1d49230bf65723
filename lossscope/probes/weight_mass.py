"""Weight mass: how much counted weight lies above eps, below it, and on the positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.types import Convention, WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import require_unit

from .base import Accumulator, Accumulators, Effects, Probe, Reads, Statistic
from .views.view import View

_LEAST = 1e-6  # share of the weights: below it a rest is rounding

_STATISTICS = (
    Statistic("W_neg", "mass_high", "mean", "weight"),
    Statistic("W_low", "mass_below", "mean", "weight"),
    Statistic("W_pos", "positive", "mean", "weight"),
    Statistic("share_above", "share_above", "mean", "1", within_one=True),
)


@dataclass(frozen=True)
class WeightMass(Probe):
    """W_neg = Σ_{w > eps} w, W_low = Σ_{w ≤ eps} w, W_pos = w₊, share_above = W_neg / (W_neg + W_low), of each query.

    w are the weights that the objective's paper thresholds (`counted_weights`), in its scale, or in the named `unit`,
    see `cocos`. Sums are over negatives, divided by the number of positives if counts are. Convention `released` leaves
    a weight equal to eps out of both sums, if the released counter does. These are the W of `cocos`, for all
    objectives, whatever their papers report.

    Statistics:
        W_neg: summed weight of the negatives above eps, per query.
        W_low: summed weight of all other negatives, per query.
        W_pos: weight of the positive, per query.
        share_above: W_neg / (W_neg + W_low); NaN for a query without weight.

    Raises InputError for eps < 0 or a convention that the objective does not support.
    Source: Bleeker & de Rijke 2022, section 4, the two W of NT-Xent.
    """

    eps: float = 0.01  # threshold: a weight strictly above it counts
    convention: Convention = "corrected"  # counting convention: corrected, released or text
    unit: WeightUnit | None = None  # unit of weights and eps: paper (of one objective), relative (of several) or cosine
    reads: ClassVar[frozenset[Reads]] = frozenset({"counts"})
    needs_objective: ClassVar[bool] = True
    cheap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {self.eps}")

    def tile(self, view: View) -> Accumulators:
        counts = view.counts(self.eps, self.convention, self.unit)
        return {
            "mass_high": Accumulator(counts.mass_above),
            "mass_below": Accumulator(counts.mass_below),
            "positive": Accumulator(counts.positive),
        }

    def effects(self, view: View) -> Effects | None:
        effects = view.effects(self.eps, self.convention, self.unit)
        if effects is None:
            return None
        counts = view.counts(self.eps, self.convention, self.unit)
        above, below = counts.mass_above.double()[:, None], counts.mass_below.double()[:, None]
        total, change = above + below, effects.mass_above + effects.mass_below
        without = (total - change).where(total - change > _LEAST * total, torch.nan)  # no weight without the candidate
        share = above / total - (above - effects.mass_above) / without
        return {
            "mass_high": effects.mass_above,
            "mass_below": effects.mass_below,
            "positive": effects.positive,
            "share_above": share.where((total > 0) & (change != 0), 0.0),
        }

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        columns = {name: part.value for name, part in accumulators.items()}
        total = columns["mass_high"] + columns["mass_below"]
        return {**columns, "share_above": columns["mass_high"] / total}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        objective.require(self.convention)
        require_unit(objective, self.unit, self.convention)
