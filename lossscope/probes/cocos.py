"""COCOS: how many samples carry the gradient of a query, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..errors import InputError
from ..objectives.base import Convention, Objective
from .base import Accumulated, Accumulators, Axis, Statistic, View

_STATISTICS = {
    "C_q": Statistic("C_q", "count", "mean_nonzero", "samples"),
    "C_q_all": Statistic("C_q_all", "count", "mean", "samples"),
    "C_B": Statistic("C_B", "count", "sum", "samples"),
    "C_0": Statistic("C_0", "count", "zeros", "queries"),
    "C_neg": Statistic("C_neg", "count", "mean", "samples"),
    "W_neg": Statistic("W_neg", "mass_high", "mean", "weight"),
    "W_low": Statistic("W_low", "mass_low", "mean", "weight"),
    "W_pos": Statistic("W_pos", "positive", "mean", "weight"),
    "N_eff": Statistic("N_eff", "n_eff", "mean", "samples"),
    "skipped": Statistic("skipped", "skipped", "true", "queries"),
}


@dataclass(frozen=True)
class Cocos:
    """count_q = #{candidates whose counted weight > eps}, and the weight above and below eps, for every query.

    Counted weights are in the scale of the objective's own paper, see the objective. C_q averages over queries
    with a count above zero (as published, E4), C_q_all over all of them, C_0 is the number of queries with none.
    N_eff = (Σ w)² / Σ w² needs no threshold; it is averaged over the queries that have any weight.
    Source: Bleeker & de Rijke 2022, section 4.
    Raises InputError for eps < 0 or a convention the objective does not know.
    """

    eps: float = 0.01
    convention: Convention = "corrected"
    axis: ClassVar[Axis] = "query"
    needs_embeddings: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {self.eps}")

    def tile(self, view: View) -> Accumulators:
        counted = view.counted(self.convention)
        counts = counted.threshold(self.eps)
        columns = {
            "count": counts.above,
            "mass_high": counts.mass_above,
            "mass_low": counts.mass_low,
            "positive": counts.positive,
            "total": counted.total,
            "square": counted.square,
        }
        found = {name: Accumulated(value, "sum") for name, value in columns.items()}
        return {**found, "skipped": Accumulated(counts.skipped.to(torch.uint8), "max")}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        columns = {name: part.value for name, part in accumulators.items()}
        total, square = columns.pop("total"), columns.pop("square")
        return {**columns, "n_eff": total.square() / square}

    def statistics(self, objective: Objective) -> tuple[Statistic, ...]:
        return tuple(_STATISTICS[name] for name in (*objective.statistics, "N_eff", "skipped"))

    def check(self, objective: Objective) -> None:
        objective.require(self.convention)
