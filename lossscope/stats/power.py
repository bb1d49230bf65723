"""Which difference can n pairs show? The power of a two-sided paired t-test, by scipy's noncentral F.

Effects are in standard deviations of the paired differences: effect = difference / sd. The squared statistic of the
test, T², has the noncentral F distribution F'(1, n − 1, n · effect²), which is the square of the noncentral t.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize, stats

from lossscope.errors import InputError

from .options import Design

_EXACT = 1e-9  # within which a power is that which is wanted
_CENTRAL = 1e-12  # noncentrality below which power is the level to all digits; at 0 scipy's ncf.sf is negative
_STEPS = 200  # doublings of an effect: one beyond 2^200 is an error of the caller
_PAIRS = 2**53  # most pairs: of more a float does not say which number it is


def power_of(effect: float, n: int, alpha: float) -> float:
    """P(T² > t²) with T² ~ F'(1, n − 1, n · effect²) and t the 1 − α/2 quantile of Student's t, n − 1 degrees.

    Args:
        effect: mean / standard deviation of the paired differences.
        n: number of pairs, at least 2.
        alpha: two-sided level.
    """
    if n < 2:
        raise InputError(f"a paired t-test takes at least 2 pairs; got {n}")
    noncentrality = n * effect * effect
    if noncentrality < _CENTRAL:
        return alpha
    freedom = float(n - 1)
    power = float(stats.ncf.sf(stats.t.isf(alpha / 2, freedom) ** 2, 1, freedom, noncentrality))
    return 1.0 if math.isnan(power) else power  # scipy gives NaN for a huge noncentrality


def smallest_effect(n: int, design: Design) -> float:
    """Return the effect that n pairs find with the power of the design; in every smaller one the power is less."""

    def missing(effect: float) -> float:
        return power_of(effect, n, design.alpha) - design.power

    high = _double_until(lambda effect: missing(effect) > 0, 1 / math.sqrt(n))
    return float(optimize.brentq(missing, 0.0, high, xtol=1e-12 * high, rtol=1e-12))


def pairs_needed(effect: float, design: Design) -> int:
    """Return the smallest n of at least 2 whose test finds an effect with the power of the design.

    Raises InputError for an effect of 0, which no number of pairs shows, and for one that takes more than 2^53 pairs.
    """
    if not 0 < abs(effect) < math.inf:
        raise InputError(f"effect must be a number other than 0; got {effect:g}")

    def enough(n: float) -> bool:
        return power_of(effect, int(n), design.alpha) >= design.power - _EXACT

    high = int(_double_until(enough, 2, _PAIRS))
    low = high // 2  # too few, or the smallest there is
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, 2)


def sd_interval(sd: float, n: int, level: float) -> tuple[float, float]:
    """Return sd · √((n − 1) / χ²) at both quantiles of χ² with n − 1 degrees: exact where differences are normal."""
    if n < 2:
        return math.nan, math.nan
    tail = (1 - level) / 2
    low, high = (sd * math.sqrt((n - 1) / float(quantile)) for quantile in stats.chi2.ppf([1 - tail, tail], n - 1))
    return low, high


def _double_until(reached: Callable[[float], bool], value: float, most: float = math.inf) -> float:
    for _ in range(_STEPS):
        if reached(value):
            return value
        if value >= most:
            break
        value *= 2
    raise InputError(
        f"the power is out of reach at {value:g}; give a larger --difference, a smaller --power, or more pairs"
    )
