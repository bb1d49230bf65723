"""Where is the statistic of all N queries of a set, if n of them were drawn at random, without replacement?

The population is the given set: an interval does not cover other items like these. Its width is 0 at n = N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lossscope.core.intervals import NO_INTERVAL, Floats, Interval, t_quantile

Bools = npt.NDArray[np.bool_]

OTHERS = 50  # values, at least, that differ from the value of most queries: with fewer, a t interval is far too short


@dataclass(frozen=True, eq=False)
class DrawnNumbers:
    """A column of n queries drawn from N, and the estimate of a statistic of all N.

    The interval of a mean is NaN if most sampled values are equal and fewer than OTHERS differ: their deviation says
    little about rare values outside the sample, and nothing if it is 0. Shares, whose values are 0 or `top`, always
    have an interval.
    """

    value: float  # estimate of the statistic from the sample
    values: Floats  # (n,) numbers of the sampled queries; NaN if a query has none
    keep: Bools  # (n,) queries that have a number and were not skipped
    population: int  # N
    top: float  # the single value other than 0, for a share; 0 for other statistics
    level: float  # of the interval

    @property
    def _domain(self) -> int:
        """Estimated number of the N queries that have a number."""
        return max(round(self.population * float(self.keep.mean())), int(self.keep.sum()))

    def of_true(self) -> Interval:
        """Return the interval of the number of queries whose number is not 0."""
        return _number_of(self.values != 0, self.population, self.level)

    def of_zeros(self) -> Interval:
        """Return the interval of the number of queries whose number is 0."""
        return _number_of((self.values == 0) & self.keep, self.population, self.level)

    def of_sum(self) -> Interval:
        """Return the interval of Σ x; the number of kept queries is random, too."""
        if self.top:
            low, high = _number_of((self.values != 0) & self.keep, self.population, self.level)
            return Interval(low * self.top, high * self.top)
        kept = np.where(self.keep, self.values, 0.0)
        if not self.keep.any() or _is_rare(kept):
            return NO_INTERVAL
        residuals = self.population * (kept - kept.mean())
        return _t_interval(self.value, residuals, len(kept) - 1, self.population, self.level)

    def of_mean(self) -> Interval:
        """Return the interval of the mean."""
        if self.top and self.keep.any():
            domain = self._domain
            low, high = _number_of(self.values[self.keep] != 0, domain, self.level)
            return Interval(low * self.top / domain, high * self.top / domain)
        return self._of_ratio(self.keep)

    def of_mean_nonzero(self) -> Interval:
        """Return the interval of the mean of the numbers above 0."""
        return self._of_ratio(self.keep & (self.values > 0))

    def _of_ratio(self, keep: Bools) -> Interval:
        """Return the interval of Σ x / Σ 1 over kept queries, as a linearised ratio, as their number is random."""
        if not keep.any() or _is_rare(self.values[keep]):
            return NO_INTERVAL
        residuals = np.where(keep, self.values - self.values[keep].mean(), 0.0) / keep.mean()
        return _t_interval(self.value, residuals, int(keep.sum()) - 1, self.population, self.level)

    def of_quantile(self, level: float) -> Interval:
        """Return the interval of a nearest-rank quantile."""
        rank = round(level * (self._domain - 1)) + 1
        return self._of_ranks(rank, rank)

    def of_floor_median(self) -> Interval:
        """Return the interval of the median, rounded down."""
        low, high = self._of_ranks((self._domain - 1) // 2 + 1, self._domain // 2 + 1)
        return NO_INTERVAL if math.isnan(low) else Interval(math.floor(low), math.floor(high))

    def _of_ranks(self, first: int, last: int) -> Interval:
        if not self.keep.any():
            return NO_INTERVAL
        return _of_order(np.sort(self.values[self.keep]), self._domain, (first, last), self.level)


def _is_rare(values: Floats) -> bool:
    """Return whether more than half of the values are equal, and fewer than OTHERS differ from them."""
    most = int(np.unique(values, return_counts=True)[1].max())
    return 2 * most > len(values) and len(values) - most < OTHERS


def _t_interval(value: float, residuals: Floats, freedom: int, population: int, level: float) -> Interval:
    """value ± t s / √n · √(1 − n/N), with s the deviation of the residuals."""
    n = len(residuals)
    if freedom < 1 or not residuals.any():
        return NO_INTERVAL
    error = math.sqrt(float(np.square(residuals).sum()) / (n - 1) / n * (1 - n / population))
    half = t_quantile(level, freedom) * error
    return Interval(float(value - half), float(value + half))


def _number_of(true: Bools, population: int, level: float) -> Interval:
    """Return the range of K of N that the exact test does not reject, given the number of true values in the sample."""
    from scipy import stats  # scipy.special has only a private function that is as exact for large populations

    n, x, tail = len(true), int(true.sum()), (1 - level) / 2
    least, most = x, population - (n - x)

    def may_be_lowest(K: int) -> bool:
        return bool(stats.hypergeom.sf(x - 1, population, K, n) > tail)

    def may_be_highest(K: int) -> bool:
        return bool(stats.hypergeom.cdf(x, population, K, n) > tail)

    low = _first(may_be_lowest, least, most)
    high = _first(lambda K: not may_be_highest(K), least, most + 1) - 1
    return Interval(float(low), float(high))


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number from which a condition holds; it must hold at `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


@lru_cache(maxsize=32)  # quantiles of many statistics have the same ranks; for a billion queries it takes seconds
def _cumulative(population: int, lowest: int, n: int) -> Floats:
    """Return P(a sample of n has at most j of the `lowest` of the population), (n + 1,)."""
    from scipy import stats

    cumulative: Floats = np.cumsum(stats.hypergeom.pmf(np.arange(n + 1), population, lowest, n))
    return cumulative


def _of_order(ordered: Floats, population: int, ranks: tuple[int, int], level: float) -> Interval:
    """Return two sorted values of the sample that enclose the values of two ranks of the population."""
    n, tail = len(ordered), (1 - level) / 2
    # the sample has a hypergeometric number of the r lowest of the population; value j is at most the quantile if j
    # of them are in the sample, and value k is at least the quantile if fewer than k of the r - 1 lowest are
    below, above = _cumulative(population, ranks[0], n), _cumulative(population, ranks[1] - 1, n)
    j = int(np.searchsorted(below, tail, "right"))  # the largest j with P(fewer than j) <= tail
    k = int(np.searchsorted(above, 1 - tail, "left")) + 1  # the smallest k with P(fewer than k) >= 1 - tail
    low = float(ordered[j - 1]) if j else math.nan
    high = float(ordered[k - 1]) if k <= n else math.nan
    return NO_INTERVAL if math.isnan(low) or math.isnan(high) else Interval(low, high)
