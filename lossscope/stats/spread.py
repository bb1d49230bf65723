"""How much do paired differences vary, and how well is that known? A standard deviation with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .options import Resampling
from .paired_tests import Values, deviation, equal_within, resamples_at_a_time
from .power import sd_interval


@dataclass(frozen=True)
class Spread:
    """Standard deviation of n paired differences (ddof 1), with its interval; NaN where there is none."""

    n: int = 0
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    method: str = ""  # how the interval is made
    note: str = ""  # why there is no number, or none to plan by


NO_SPREAD = Spread()


def spread_of_seeds(a: Values, b: Values, level: float) -> Spread:
    """Return the spread over seeds; its interval is that of χ², exact where differences are normal.

    Args:
        a: (n,) the metric of one system, a number per seed.
        b: (n,) the metric of the other, the same seeds in the same order.
        level: of the interval.
    """
    n, d = len(a), a - b
    if n < 2:
        return Spread(n, note="one seed: seed variance unknown")
    if np.ptp(d) <= equal_within(a, b):
        return Spread(n, 0.0, note="the same difference in every seed: no spread to plan by")
    sd = deviation(d)
    return Spread(n, sd, *sd_interval(sd, n, level), "chi-square, seeds")


def spread_of_images(differences: Values, unit: str, resampling: Resampling) -> Spread:
    """Return the spread over images or queries; its interval is a percentile bootstrap, since these are not normal.

    Args:
        differences: (n,) one per image.
        unit: what is resampled: images, or queries.
        resampling: of the bootstrap.
    """
    n, sd = len(differences), deviation(differences)
    if not sd > 0:
        return Spread(n, sd, note=f"the same difference in all {unit}: no spread to plan by")
    low, high = stats.bootstrap(
        (np.sort(differences),), _sd, vectorized=True, axis=-1, n_resamples=resampling.resamples,
        batch=resamples_at_a_time(n), confidence_level=resampling.level, method="percentile",
        rng=np.random.default_rng(resampling.seed),
    ).confidence_interval  # fmt: skip
    return Spread(n, sd, float(low), float(high), f"percentile bootstrap, {unit}")


def _sd(x: Values, axis: int) -> Values:
    return np.asarray(x.std(axis=axis, ddof=1))
