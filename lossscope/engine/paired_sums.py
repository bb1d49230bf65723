"""Difference of two sweeps over the same batches, as one statistic with sums over items.

    d_q = w_q y_q / Σ w of B  −  w_q y_q / Σ w of A, for each query, and likewise for the effect of each candidate

The part that a query or a candidate has in common under both models cancels before anything is squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.intervals import Floats, ItemSums
from lossscope.errors import InputError

from .item_sums import IntervalCollector
from .linear_statistics import BatchDeviations, LinearStatistic
from .result_group import ResultGroup, RowEffects


@dataclass(frozen=True)
class PairedSums:
    """The sums of the difference B − A of one statistic."""

    sums: ItemSums
    is_equal: bool  # whether all numbers of queries and all effects are the same in A and B


def paired_sums(collector: IntervalCollector, a: ResultGroup, b: ResultGroup) -> dict[str, PairedSums]:
    """Return the sums of B − A for each statistic that both have; none if effects are unknown.

    Args:
        collector: of A.
        a: the results of A.
        b: the results of B, over the same batches.

    Raises:
        InputError: rows of A and B are not of the same queries.
    """
    number, share = collector.units.number, collector.sample.share
    sides = {name: (a.linear[name][0], b.linear[name][0]) for name in a.linear if name in b.linear}
    by_unit = {name: np.zeros(number) for name in sides}
    overlaps, is_equal = dict.fromkeys(sides, 0.0), dict.fromkeys(sides, True)
    for of_a, of_b in _pairs(a.row_effects(), b.row_effects()):
        if of_a is None or of_b is None:
            return {}
        for name, (first, second) in sides.items():
            difference = _difference(of_a.of_statistics.get(name), of_b.of_statistics.get(name), first, second)
            if difference is not None and difference.any():
                by_unit[name] += of_a.by_unit(difference, number, share)
                overlaps[name] += of_a.overlap(difference, share)
                is_equal[name] = False
    of_all = a.by_unit(None, number)
    paired = {}
    for name, (first, second) in sides.items():
        values = _values(second) - _values(first)
        equal = is_equal[name] and not bool(values.any())
        squares = _squares(first, second)
        sums = ItemSums(of_all, a.by_unit(values, number), by_unit[name], overlaps[name], *squares, floor=1.0)
        paired[name] = PairedSums(sums, equal)
    return paired


def _share(linear: LinearStatistic) -> float:
    """n / Σ weight."""
    return 1.0 if linear.weights is None else len(linear.values) / max(float(linear.weights.sum()), 1e-300)


def _values(linear: LinearStatistic) -> Tensor:
    """(n,) (y − mean) · weight · n / Σ weight + mean."""
    values, weights = linear.values.double(), linear.weights
    if weights is None:
        return values
    mean = float((values * weights).sum() / weights.sum().clamp(min=1e-300))
    return (values - mean) * weights * _share(linear) + mean


def _difference(a: Floats | None, b: Floats | None, first: LinearStatistic, second: LinearStatistic) -> Floats | None:
    """(r, c) effect under B − effect under A; None if neither has effects."""
    if a is None:
        return None if b is None else b * _share(second)
    return -a * _share(first) if b is None else b * _share(second) - a * _share(first)


def _squares(first: LinearStatistic, second: LinearStatistic) -> tuple[float, float]:
    """Return the squares of the differences of batches, predicted and observed."""
    a, b = first.deviations, second.deviations
    if a is None or b is None:
        return 0.0, 0.0
    return BatchDeviations(a.sizes, b.observed.double() - a.observed.double(), b.predicted - a.predicted).squares()


def _pairs(
    first: Iterator[RowEffects | None], second: Iterator[RowEffects | None]
) -> Iterator[tuple[RowEffects | None, RowEffects | None]]:
    """Yield the effects of the same rows on both sides, whose chunks may differ in size; None if there are none.

    Raises InputError if the rows are not of the same queries.
    """
    end = object()
    a: Any = next(first, end)
    b: Any = next(second, end)
    while a is not end and b is not end:
        if a is None or b is None:
            yield a, b
            return
        size = min(len(a.query_index), len(b.query_index))
        of_a, of_b = a[:size], b[:size]
        if not torch.equal(of_a.query_index, of_b.query_index) or of_a.units.shape != of_b.units.shape:
            break
        yield of_a, of_b
        a = a[size:] if len(a.query_index) > size else next(first, end)
        b = b[size:] if len(b.query_index) > size else next(second, end)
    if a is not end or b is not end:
        raise InputError(
            "both sides must have the same rows of S; one side is in tiles, the other is not. Use a smaller "
            "--batch-size"
        )
