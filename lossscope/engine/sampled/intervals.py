"""Where is the statistic of all N queries of a set, if n of them were drawn at random, without replacement?

The population is the given set: nothing is said of other items like these. An interval has the width 0 at n = N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lossscope.core.intervals import LEVEL, t_quantile
from lossscope.probes.base import Reducer

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Interval = tuple[float, float]

OTHERS = 50  # values, at least, beside one that most queries have: of fewer a t interval is far too short
NO_INTERVAL: Interval = (math.nan, math.nan)
_QUANTILES: dict[Reducer, float] = {"q10": 0.1, "q50": 0.5, "q90": 0.9}
_METHODS: dict[Reducer, str] = {
    "mean": "t",
    "mean_nonzero": "ratio, t",
    "sum": "t",
    "zeros": "hypergeometric",
    "true": "hypergeometric",
    **dict.fromkeys((*_QUANTILES, "floor_median"), "order statistics"),
}


def method_of(reducer: Reducer, is_share: bool) -> str | None:
    """Return how the interval of a statistic is made: `sampled queries, t`; None where there is none."""
    how = "hypergeometric" if is_share and reducer in ("mean", "sum") else _METHODS.get(reducer)
    return None if how is None else f"sampled queries, {how}"


def interval(
    value: float,
    values: Floats,
    usable: Bools,
    reducer: Reducer,
    population: int,
    top: float,
    level: float = LEVEL,
) -> Interval:
    """Return the interval of a statistic; NaN where the sample does not say how far it may be off.

    That is so of a mean where most sampled values are equal and fewer than OTHERS are not: their deviation says little
    of rare values that were not drawn, and nothing where it is 0. Shares, whose values are 0 or `top`, have one.

    Args:
        value: estimate of the statistic from the sample.
        values: (n,) of the queries of the sample; NaN where there is none.
        usable: (n,) queries that were not skipped.
        reducer: of the statistic; that of `sum`, `zeros` and `true` is a number of the whole set.
        population: N.
        top: the one value that is not 0, of a statistic that is a share; 0 of any other.
        level: that the interval holds.
    """
    n, keep = len(values), usable & ~np.isnan(values)
    if n >= population:
        return value, value
    if reducer == "true":
        return _number_of(values != 0, population, level)
    if reducer == "zeros":
        return _number_of((values == 0) & keep, population, level)
    if top and reducer == "sum":  # how many queries are not left out is random, too
        low, high = _number_of((values != 0) & keep, population, level)
        return low * top, high * top
    if not keep.any():
        return NO_INTERVAL
    domain = max(round(population * float(keep.mean())), int(keep.sum()))  # queries of the set that are not left out
    if reducer in _QUANTILES or reducer == "floor_median":
        return _of_order(np.sort(values[keep]), domain, reducer, level)
    if top and reducer == "mean":
        low, high = _number_of(values[keep] != 0, domain, level)
        return low * top / domain, high * top / domain
    if reducer == "sum":
        kept = np.where(keep, values, 0.0)
        if _is_rare(kept):
            return NO_INTERVAL
        return _t_interval(value, population * (kept - kept.mean()), n - 1, population, level)
    if reducer == "mean_nonzero":
        keep &= values > 0
    if reducer not in ("mean", "mean_nonzero") or not keep.any() or _is_rare(values[keep]):
        return NO_INTERVAL
    # linearised ratio: Σ x / Σ 1 over the queries that are kept, whose number is random, too
    residuals = np.where(keep, values - values[keep].mean(), 0.0) / keep.mean()
    return _t_interval(value, residuals, int(keep.sum()) - 1, population, level)


def _is_rare(values: Floats) -> bool:
    """Return whether more than half of the values are equal, and fewer than OTHERS are not."""
    most = int(np.unique(values, return_counts=True)[1].max())
    return 2 * most > len(values) and len(values) - most < OTHERS


def _t_interval(value: float, residuals: Floats, freedom: int, population: int, level: float) -> Interval:
    """value ± t s / √n · √(1 − n/N), s the deviation of the residuals."""
    n = len(residuals)
    if freedom < 1 or not residuals.any():
        return NO_INTERVAL
    error = math.sqrt(float(np.square(residuals).sum()) / (n - 1) / n * (1 - n / population))
    half = t_quantile(level, freedom) * error
    return float(value - half), float(value + half)


def _number_of(true: Bools, population: int, level: float) -> Interval:
    """Return which numbers K of N the number of true values in the sample does not contradict, by the exact test."""
    from scipy import stats  # what is as exact for large populations is private in scipy.special

    n, x, tail = len(true), int(true.sum()), (1 - level) / 2
    least, most = x, population - (n - x)

    def may_be_lowest(K: int) -> bool:
        return bool(stats.hypergeom.sf(x - 1, population, K, n) > tail)

    def may_be_highest(K: int) -> bool:
        return bool(stats.hypergeom.cdf(x, population, K, n) > tail)

    low = _first(may_be_lowest, least, most)
    high = _first(lambda K: not may_be_highest(K), least, most + 1) - 1
    return float(low), float(high)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number from which a condition holds, known to hold at `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


@lru_cache(maxsize=32)  # quantiles of many statistics have the same ranks; of a billion it takes seconds
def _cumulative(population: int, lowest: int, n: int) -> Floats:
    """Return P(at most j of the `lowest` of the population are among n that are drawn), (n + 1,)."""
    from scipy import stats

    cumulative: Floats = np.cumsum(stats.hypergeom.pmf(np.arange(n + 1), population, lowest, n))
    return cumulative


def _of_order(ordered: Floats, population: int, reducer: Reducer, level: float) -> Interval:
    """Return two sorted values of the sample between which the quantile of the population is, by its exact rank."""
    n, tail = len(ordered), (1 - level) / 2
    if reducer == "floor_median":
        ranks = (population - 1) // 2 + 1, population // 2 + 1
    else:
        ranks = (round(_QUANTILES[reducer] * (population - 1)) + 1,) * 2
    # of the r lowest of the population a hypergeometric number is in the sample; value j is at most the quantile
    # where j of them are, and value k at least where fewer than k of the r - 1 lowest are
    below, above = _cumulative(population, ranks[0], n), _cumulative(population, ranks[1] - 1, n)
    j = int(np.searchsorted(below, tail, "right"))  # the largest j with P(fewer than j) <= tail
    k = int(np.searchsorted(above, 1 - tail, "left")) + 1  # the smallest k with P(fewer than k) >= 1 - tail
    low = float(ordered[j - 1]) if j else math.nan
    high = float(ordered[k - 1]) if k <= n else math.nan
    if math.isnan(low) or math.isnan(high):
        return NO_INTERVAL
    return (math.floor(low), math.floor(high)) if reducer == "floor_median" else (low, high)
