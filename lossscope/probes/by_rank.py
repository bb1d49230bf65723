"""By rank: where in the ranking does the weight lie?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View

RANKS = tuple(2**power for power in range(21))
"""Last rank of each bin: 1, 2, 3-4, 5-8, 9-16, ..., the last bin with all beyond."""
STEP = 0.05  # width of a bin of differences
DIFFERENCES = tuple(round(STEP * step, 2) for step in range(-40, 41))
"""Middle of each bin of s_n − s₊, −2, −1.95, ..., 2; the first and the last bin have all beyond."""
_FEWEST_BINS = 3  # bins of ranks of the positive that a slope needs
_FEWEST_NEGATIVES = 10  # of a bin of differences that has a mean weight
_EQUAL = 1e-6  # relative difference up to which two bins have the same mean weight
_CURVES = {
    "candidate_weight": ("norm", RANKS),
    "query_weight": ("norm", RANKS),
    "query_share": ("1", RANKS),
    "weight_share": ("1", RANKS),
    "difference_weight": ("norm", DIFFERENCES),
}
"""Curve -> its unit and its points."""


@dataclass(frozen=True)
class ByRank(Probe):
    """Σ w by rank of the negative, by rank R of the positive, and by D = s_n − s₊; w = |W| of each negative of a batch.

    The hardest negative has rank 1; of equal ones the first is the harder. R is 1 + the number of negatives above s₊,
    the best positive. The weight of a query is Σ w over its negatives. All numbers are of a whole batch, so queries
    with much weight count more. For SmoothAP its paper expects a weight that falls as R^−2, and a ridge at D = 0.

    Statistics:
        exponent: slope of the log of the weight of a query against log R, over the queries with weight and R >= 2. A
            query with R = 1 may have any weight close to 0. NaN if R lies in fewer than 3 of the bins 2, 3-4, 5-8, ...
        ridge: D at which the mean weight of a negative is largest, in bins of 0.05 with 10 or more negatives. NaN
            without weight, and where bins share the largest mean, as those of a hinge do.
        near_share: share of the weight on negatives with abs(D) of at most `near` (0.1).
        mean_rank: Σ w · rank / Σ w, the mean rank of the negatives by weight.

    Raises InputError for near <= 0.
    Source: Bleeker & de Rijke 2022, section 4, the two properties of eq. 12.
    """

    near: float = 0.1  # largest distance from the positive's similarity that near_share adds up
    curve: bool = False  # also mean weights by rank of the negative, by rank of the positive, and by D
    axis: ClassVar[Axis] = "batch"
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "extremes"})
    needs_objective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.near < float("inf"):
            raise InputError(f"near must be a number above 0, as 0.1; got {self.near}")

    def points(self) -> Mapping[str, tuple[float, ...]]:
        """Return the ranks and differences of each curve."""
        return {name: points for name, (_, points) in _CURVES.items()}

    def tile(self, view: View) -> Accumulators:
        k, mask = view.shape.batches, view.rows.mask
        S = view.rows.S.double().masked_fill(mask.non_negatives, -torch.inf)
        counted = mask.negatives & mask.usable[:, None]
        w = view.W.abs().double() * counted
        order = S.contiguous().argsort(stable=True, dim=1, descending=True)
        rank = torch.arange(1, S.shape[1] + 1, device=S.device).expand_as(S)
        by_rank, number = w.gather(1, order), counted.gather(1, order).double()
        D = (S - view.extremes.positive.double()[:, None]).masked_fill(~counted, 0.0)
        of_difference = (D / STEP).round().long().add(len(DIFFERENCES) // 2).clamp(0, len(DIFFERENCES) - 1)
        of_query, R, usable = w.sum(1), view.extremes.above + 1, mask.usable.double()
        fitted = (of_query > 0) & (R >= 2)
        x = R.double().log()
        y = of_query.where(fitted, 1.0).log()
        moments = torch.stack([torch.ones_like(x), x, y, x * x, x * y], 1) * fitted[:, None]
        sums = {
            "weight_of_ranks": _add_up(by_rank, _bin_of(rank), len(RANKS), k),
            "number_of_ranks": _add_up(number, _bin_of(rank), len(RANKS), k),
            "weight_of_positives": _add_up(of_query, _bin_of(R), len(RANKS), k),
            "number_of_positives": _add_up(usable, _bin_of(R), len(RANKS), k),
            "fitted_of_positives": _add_up(fitted.double(), _bin_of(R), len(RANKS), k),
            "weight_of_differences": _add_up(w, of_difference, len(DIFFERENCES), k),
            "number_of_differences": _add_up(counted.double(), of_difference, len(DIFFERENCES), k),
            "moments": moments.reshape(k, -1, 5).sum(1),
            "near": (w * (D.abs() <= self.near)).reshape(k, -1).sum(1),
            "ranked": (by_rank * rank).reshape(k, -1).sum(1),
        }
        return {name: Accumulator(value, "sum") for name, value in sums.items()}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        sums = {name: part.value for name, part in accumulators.items()}
        total = sums["weight_of_positives"].sum(1)
        number = sums["number_of_differences"]
        difference = (sums["weight_of_differences"] / number).where(number >= _FEWEST_NEGATIVES, torch.nan)
        columns = {
            "exponent": _slope(sums["moments"], sums["fitted_of_positives"]),
            "ridge": _ridge(difference),
            "near_share": sums["near"] / total,
            "mean_rank": sums["ranked"] / total,
        }
        if not self.curve:
            return columns
        queries = sums["number_of_positives"]
        return {
            **columns,
            "candidate_weight": sums["weight_of_ranks"] / sums["number_of_ranks"],
            "query_weight": sums["weight_of_positives"] / queries,
            "query_share": queries / queries.sum(1, keepdim=True),
            "weight_share": sums["weight_of_positives"] / total[:, None],
            "difference_weight": difference,
        }

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        numbers = (
            Statistic("exponent", "exponent", "mean", "1"),
            Statistic("ridge", "ridge", "mean", "similarity"),
            Statistic("near_share", "near_share", "mean", "1", within_one=True),
            Statistic("mean_rank", "mean_rank", "mean", "rank"),
        )
        curves = (Statistic(name, name, "curve", unit) for name, (unit, _) in _CURVES.items())
        return (*numbers, *curves) if self.curve else numbers


def _bin_of(rank: Tensor) -> Tensor:
    """Return the bin of each rank; the last one for ranks beyond."""
    ends = torch.tensor(RANKS, device=rank.device)
    return torch.bucketize(rank.contiguous(), ends).clamp(max=len(RANKS) - 1)


def _add_up(values: Tensor, bins: Tensor, size: int, batches: int) -> Tensor:
    """Return the sum of the values in each bin of each batch, (batches, size).

    Args:
        values: (batches · n, ...).
        bins: of each value.
        size: number of bins.
        batches: number of batches.
    """
    sums = values.new_zeros(batches, size)
    return sums.scatter_add_(1, bins.reshape(batches, -1), values.reshape(batches, -1))


def _slope(moments: Tensor, number: Tensor) -> Tensor:
    """(k,) Σ (x − x̄) (y − ȳ) / Σ (x − x̄)², NaN if too few bins have a query.

    Args:
        moments: (k, 5) n, Σ x, Σ y, Σ x², Σ x y.
        number: (k, bins) queries of each bin.
    """
    n, x, y, xx, xy = moments.unbind(1)
    slope: Tensor = (n * xy - x * y) / (n * xx - x * x)
    return slope.where((number > 0).sum(1) >= _FEWEST_BINS, torch.nan)


def _ridge(mean: Tensor) -> Tensor:
    """(k,) difference at which the mean weight is largest; NaN without weight, or if bins share the largest mean."""
    mean = mean.nan_to_num(0.0)
    largest, bins = mean.max(1)
    alone = (mean >= largest[:, None] * (1 - _EQUAL)).sum(1) == 1
    return mean.new_tensor(DIFFERENCES)[bins].where(alone & (largest > 0), torch.nan)
