"""Where is the statistic of all N queries of a set, if n of them were drawn at random, without replacement?

The population is the given set: nothing is said of other items like these. An interval has the width 0 at n = N.
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

OTHERS = 50  # values, at least, beside one that most queries have: of fewer a t interval is far too short


@dataclass(frozen=True, eq=False)
class DrawnNumbers:
    """A column of n queries that were drawn from N, and the estimate of a statistic of all N.

    The interval of a mean is NaN where most sampled values are equal and fewer than OTHERS are not: their deviation
    says little of rare values that were not drawn, and nothing where it is 0. Shares, whose values are 0 or `top`, have
    one.
    """

    value: float  # estimate of the statistic from the sample
    values: Floats  # (n,) of the queries of the sample; NaN where there is none
    keep: Bools  # (n,) queries that have a number and were not skipped
    population: int  # N
    top: float  # the one value that is not 0, of a statistic that is a share; 0 of any other
    level: float  # that the interval holds

    @property
    def _domain(self) -> int:
        """About how many of the N queries have a number."""
        return max(round(self.population * float(self.keep.mean())), int(self.keep.sum()))

    def of_true(self) -> Interval:
        """Return the interval of the number of queries whose number is not 0."""
        return _number_of(self.values != 0, self.population, self.level)

    def of_zeros(self) -> Interval:
        """Return the interval of the number of queries whose number is 0."""
        return _number_of((self.values == 0) & self.keep, self.population, self.level)

    def of_sum(self) -> Interval:
        """Return the interval of Σ x; how many queries are not left out is random, too."""
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
        """Return that of Σ x / Σ 1 over the queries that are kept, whose number is random: a linearised ratio."""
        if not keep.any() or _is_rare(self.values[keep]):
            return NO_INTERVAL
        residuals = np.where(keep, self.values - self.values[keep].mean(), 0.0) / keep.mean()
        return _t_interval(self.value, residuals, int(keep.sum()) - 1, self.population, self.level)

    def of_quantile(self, level: float) -> Interval:
        """Return the interval of a nearest-rank quantile."""
        place = round(level * (self._domain - 1)) + 1
        return self._of_ranks(place, place)

    def of_floor_median(self) -> Interval:
        """Return the interval of the median, rounded down."""
        low, high = self._of_ranks((self._domain - 1) // 2 + 1, self._domain // 2 + 1)
        return NO_INTERVAL if math.isnan(low) else Interval(math.floor(low), math.floor(high))

    def _of_ranks(self, first: int, last: int) -> Interval:
        if not self.keep.any():
            return NO_INTERVAL
        return _of_order(np.sort(self.values[self.keep]), self._domain, (first, last), self.level)


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
    return Interval(float(value - half), float(value + half))


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
    return Interval(float(low), float(high))


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


def _of_order(ordered: Floats, population: int, ranks: tuple[int, int], level: float) -> Interval:
    """Return two sorted values of the sample between which the values of two ranks of the population are."""
    n, tail = len(ordered), (1 - level) / 2
    # of the r lowest of the population a hypergeometric number is in the sample; value j is at most the quantile
    # where j of them are, and value k at least where fewer than k of the r - 1 lowest are
    below, above = _cumulative(population, ranks[0], n), _cumulative(population, ranks[1] - 1, n)
    j = int(np.searchsorted(below, tail, "right"))  # the largest j with P(fewer than j) <= tail
    k = int(np.searchsorted(above, 1 - tail, "left")) + 1  # the smallest k with P(fewer than k) >= 1 - tail
    low = float(ordered[j - 1]) if j else math.nan
    high = float(ordered[k - 1]) if k <= n else math.nan
    return NO_INTERVAL if math.isnan(low) or math.isnan(high) else Interval(low, high)
