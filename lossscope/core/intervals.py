"""mean ± t · SE, where items are queries here and candidates there: the sums over items that an interval takes.

Two batches share images, and an image that is a candidate of many queries moves all of their numbers. What counts as
independent is the item (`core/sampling_units`), and its influence on a mean has two parts (Hajek projection):

    g_i = Σ over its queries of (y − mean) + Σ of its effect, over other queries that have it as a candidate
    SE² = n / (n − 1) · (Σ g_i² − overlap) / (Σ weights)²

The effect of a candidate is y less y without it (a jackknife), less the mean of the row. What only one query and the
candidates of one unit have in common stands in g of both and must be counted once, which `overlap` takes away (as for
dyadic data, Aronow, Samii & Assenova 2015). Of a statistic that is no mean in a batch, as a quantile of few numbers,
what batches deviate more or less than the means predict is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .types import LEVEL

Floats = npt.NDArray[np.float64]
FLOOR = 0.8  # candidates' effects from few rows are noisy; queries and candidates may oppose each other somewhat


def t_quantile(level: float, freedom: float) -> float:
    """t with P(|T| <= t) = level, of Student's t with so many degrees of freedom; NaN where there are none.

    >>> round(t_quantile(0.95, 5), 4)
    2.5706
    """
    from scipy.special import stdtrit  # scipy.stats makes t.ppf of it; that import takes three times as long

    return float(stdtrit(freedom, (1 + level) / 2))


class Interval(NamedTuple):
    """Ends of an interval, NaN where there is none."""

    low: float
    high: float


NO_INTERVAL = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class ItemSums:
    """Sums over the queries and candidates of each of n units, for one statistic; sums of parts are added.

    A query may count with a weight; the statistic is Σ weight · y / Σ weight.
    """

    weights: Floats  # (n,) of its queries
    values: Floats  # (n,) weight · y of its queries
    effects: Floats  # (n,) of its candidates on queries of other units, times their weights
    overlap: float  # Σ of squares of what a query has from one unit, which two g have; NaN: effects are not known
    predicted: float = 0.0  # Σ over batches of the square that `values` predict of a statistic that is no mean
    observed: float = 0.0  # Σ over batches of the square of its own deviation
    floor: float = FLOOR  # share of Σ (own part of g)² that SE² is not below, but for the deviations of batches

    @property
    def mean(self) -> float:
        """Return Σ weight · y / Σ weight; NaN without any query."""
        total = self.weights.sum()
        return float(self.values.sum() / total) if total > 0 else float("nan")

    @property
    def is_known(self) -> bool:
        """Whether the effects of candidates are known in all parts; `overlap` is NaN where they are not."""
        return not math.isnan(self.overlap)

    @property
    def variance(self) -> float:
        """Return SE² of the mean; NaN of fewer than two units, or where no unit differs from another."""
        total, n = self.weights.sum(), self._units
        if n < 2 or not total > 0 or not self.is_known:
            return float("nan")
        deviations = self.values - self.mean * self.weights
        if float(np.abs(deviations).max()) <= _LEAST * max(float(np.abs(self.values).max()), _LEAST):
            return float("nan")
        alone = self.floor * float(np.square(deviations).sum())
        square = max(float(np.square(deviations + self.effects).sum()) - self.overlap, alone)
        square = max(square + self.observed - self.predicted, self.observed)
        variance = float(square * n / (n - 1) / total**2)
        return variance if variance > (_LEAST * max(abs(self.mean), _LEAST)) ** 2 else float("nan")

    @property
    def degrees_of_freedom(self) -> float:
        """Return n − 1, or fewer where most of Σ g² is overlap, which few sampled queries know only roughly."""
        n, square = self._units, self.variance * float(self.weights.sum()) ** 2
        if not square > 0 or self.overlap <= square:
            return max(n - 1, 1)
        return max((n - 1) * (square / self.overlap) ** 2, 1)

    @property
    def _units(self) -> int:
        """Return n, the units that occur."""
        return int(np.count_nonzero((self.weights != 0) | (self.effects != 0)))

    def interval(self, centre: float | None = None, level: float = LEVEL) -> Interval:
        """Return centre ∓ t · SE.

        Args:
            centre: the number that is printed; None: the mean.
            level: that the interval holds.
        """
        middle = self.mean if centre is None else centre
        half = t_quantile(level, self.degrees_of_freedom) * float(np.sqrt(self.variance))
        return Interval(middle - half, middle + half)


_LEAST = 1e-12  # deviation, as a share of the mean, below which all units are alike but for rounding


def add_sums(parts: Iterable[ItemSums]) -> ItemSums:
    """Return the sums over parts of the same units."""
    first, *others = parts
    for other in others:
        first = ItemSums(
            first.weights + other.weights, first.values + other.values, first.effects + other.effects,
            first.overlap + other.overlap, first.predicted + other.predicted, first.observed + other.observed,
        )  # fmt: skip
    return first
