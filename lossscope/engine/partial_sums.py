"""The statistic of a batch whose elements are in several parts: what each part adds, and the statistic from all."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lossscope.probes.base import QUANTILES, Reducer, Statistic, reduce_column

BY_ORDER = ("floor_median", *QUANTILES)  # reducers that need every value


def partial_sums(reducer: Reducer, values: Tensor, keep: Tensor) -> Tensor:
    """(k, m) float64, what the elements of a part add to the statistics of m columns; every value of a quantile.

    Args:
        reducer: of the statistics; no `curve`.
        values: (n, m) of the elements, n of them may be 0.
        keep: (n, m) bool, elements that are not left out.
    """
    values = values.double()
    if reducer == "true":
        return values.sum(0)[None]
    if reducer in BY_ORDER:
        return values.where(keep, torch.nan)
    if reducer == "zeros":
        return ((values == 0) & keep).sum(0).double()[None]
    if reducer == "mean_nonzero":
        keep = keep & (values > 0)
    number, total = keep.sum(0).double(), values.where(keep, 0.0).sum(0)
    if reducer == "sum":
        return total[None]
    if reducer in ("min", "max"):
        return _extreme(reducer, values, keep)[None]
    if reducer == "std":
        mean = total / number
        return torch.stack([number, mean, (values - mean).where(keep, 0.0).square().sum(0)])
    return torch.stack([total, number])


def partial_length(reducer: Reducer, elements: int) -> int:
    """Return k of the sums of a part of so many elements."""
    if reducer in BY_ORDER:
        return elements
    return {"mean": 2, "mean_nonzero": 2, "std": 3}.get(reducer, 1)


def statistic_of_parts(reducer: Reducer, parts: Sequence[Tensor]) -> Tensor:
    """(m,) statistics of all elements, from what each part adds: equal to `reduce_column` of them, but for rounding.

    Numbers of elements and sums of whole numbers are exact; a quantile is exactly that of all values.
    """
    if reducer in BY_ORDER:
        values = torch.cat(list(parts))
        if not len(values):
            return values.new_full(values.shape[1:], torch.nan)
        return reduce_column(Statistic("all", "all", reducer, ""), {"all": values}, 1)[0]
    stacked = torch.stack(list(parts))
    if reducer in ("min", "max"):
        extreme = stacked[:, 0].amin(0) if reducer == "min" else stacked[:, 0].amax(0)
        return extreme.where(extreme.isfinite(), torch.nan)
    if reducer == "std":
        return _deviation(*stacked.unbind(1))
    total = stacked.sum(0)
    return total[0] if len(total) == 1 else total[0] / total[1]


def _extreme(reducer: Reducer, values: Tensor, keep: Tensor) -> Tensor:
    """(m,) smallest or largest value that is kept; infinite where there is none."""
    worst = torch.inf if reducer == "min" else -torch.inf
    kept = torch.cat([values.where(keep, worst), values.new_full((1, values.shape[1]), worst)])
    return kept.amin(0) if reducer == "min" else kept.amax(0)


def _deviation(number: Tensor, mean: Tensor, squares: Tensor) -> Tensor:
    """(m,) deviation of all elements, from (parts, m) numbers, means and sums of squares about the own mean."""
    mean = mean.where(number > 0, 0.0)
    total = number.sum(0)
    of_all = (number * mean).sum(0) / total
    return ((squares + number * (mean - of_all).square()).sum(0) / total).sqrt()
