"""Alignment: how far is a query from its best positive on the unit sphere?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Effects, Probe, Reads, Statistic
from .views.view import View


@dataclass(frozen=True)
class Alignment(Probe):
    """|v − t₊|² = 2 − 2 s₊ of the best positive t₊, for every query v; in [0, 4], smaller is better aligned.

    It is a distance if S is the cosine of unit vectors; for other scores it is 2 − 2 s₊ and no distance.
    NaN without a positive; the mean leaves skipped queries out.

    Source: Wang & Isola 2020, L_align with its exponent 2, over the pairs of a batch.
    """

    reads: ClassVar[frozenset[Reads]] = frozenset({"extremes"})
    cheap: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        return {"positive": Accumulator(view.extremes.positive)}

    def effects(self, view: View) -> Effects:
        return {}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        return {"alignment": 2 - 2 * accumulators["positive"].value}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (Statistic("alignment", "alignment", "mean", "1"),)
