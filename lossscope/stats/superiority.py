"""Does a new training of one system beat a new training of another? P(A > B), with an interval that trusts nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .paired_tests import Values, equal_within


@dataclass(frozen=True)
class Superiority:
    """P(A > B) of one seed for both, and its interval; NaN with fewer than two seeds."""

    p: float = math.nan  # share of seeds in which A is better, a tie counting half
    low: float = math.nan
    high: float = math.nan


def superiority(a: Values, b: Values, level: float) -> Superiority:
    """P(A > B) = (wins + ties / 2) / n: how often is A better than B when both are trained with a new seed?

    The interval is the exact one of a binomial share (Clopper and Pearson 1934), which holds for any distribution of
    differences and any number of seeds; a tie may be a win at its upper end and a loss at its lower one.

    Args:
        a: (n,) the metric of one system, a number per seed.
        b: (n,) the metric of the other, the same seeds in the same order.
        level: of the interval.
    """
    n = len(a)
    if n < 2:
        return Superiority()
    difference = a - b
    tie = np.abs(difference) <= equal_within(a, b)
    wins, ties = int(((difference > 0) & ~tie).sum()), int(tie.sum())
    low = stats.binomtest(wins, n).proportion_ci(level, "exact").low
    high = stats.binomtest(wins + ties, n).proportion_ci(level, "exact").high
    return Superiority((wins + ties / 2) / n, float(low), float(high))
