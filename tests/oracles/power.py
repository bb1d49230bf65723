"""The power of a paired t-test, and a binomial interval, by sums over all outcomes."""

from __future__ import annotations

import math


def _normal_above(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def power(effect: float, n: int, critical: float, steps: int = 20_000) -> float:
    """P(|T| > critical): the normal probabilities given the sample deviation, summed over all deviations.

    T = (Z + effect · √n) / U with U² = χ²(n − 1) / (n − 1), whose density is summed at midpoints of u.
    """
    freedom, shift = n - 1, effect * math.sqrt(n)
    middle, width = 1.0, 12 / math.sqrt(freedom)
    low, high = max(0.0, middle - width), middle + width
    step = (high - low) / steps
    log_constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
    total = 0.0
    for index in range(steps):
        u = low + (index + 0.5) * step
        density = math.exp(log_constant + (freedom - 1) * math.log(u) - freedom * u * u / 2)
        total += density * (_normal_above(critical * u - shift) + _normal_above(critical * u + shift)) * step
    return total


def binomial_interval(wins: int, n: int, level: float) -> tuple[float, float]:
    """The shares at which `wins` or more, and `wins` or fewer, of n have the probability (1 − level) / 2."""
    tail = (1 - level) / 2

    def at_least(k: int, share: float) -> float:
        return sum(math.comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(k, n + 1))

    low, high = 0.0, 1.0
    if wins:
        below, above = 0.0, 1.0
        for _ in range(100):
            middle = (below + above) / 2
            below, above = (middle, above) if at_least(wins, middle) < tail else (below, middle)
        low = below
    if wins < n:
        below, above = 0.0, 1.0
        for _ in range(100):
            middle = (below + above) / 2
            below, above = (middle, above) if 1 - at_least(wins + 1, middle) > tail else (below, middle)
        high = below
    return low, high
