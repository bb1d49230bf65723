"""Is a mean difference of pairs more than chance? Tests, intervals and effect sizes; scipy does the statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from lossscope.errors import InputError

Values = npt.NDArray[np.float64]
_AT_ONCE = 16  # comparisons that share a call of scipy
_CELLS = 200_000  # differences that are resampled at a time, of each comparison
_EQUAL = 1e-9  # relative; differences this close together do not differ: recalls are multiples of 100 / N


@dataclass(frozen=True)
class Resampling:
    """How chance is drawn: resamples of permutations and of the bootstrap, their seed, the level of intervals.

    Raises InputError for values out of range.
    """

    resamples: int = 9999
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.resamples < 99:
            raise InputError(f"resamples must be at least 99; got {self.resamples}. 9999 is usual")
        if self.seed < 0:
            raise InputError(f"seed must be at least 0; got {self.seed}")
        if not 0 < self.level < 1:
            raise InputError(f"level must be between 0 and 1; got {self.level}. 0.95 is usual")


@dataclass(frozen=True)
class ImageTest:
    """p: two-sided, signs of differences flipped; low, high: bootstrap interval; d: d_z = mean / sd of differences."""

    p: float = math.nan
    low: float = math.nan
    high: float = math.nan
    d: float = math.nan


@dataclass(frozen=True)
class SeedTest:
    """n: pairs; sd: of the differences, ddof 1; p: paired t-test; low, high: its interval; flips: p by sign flips,
    exact up to 2^n resamples; d: d_z = mean / sd. NaN: n pairs, or equal ones, can not tell.
    """

    n: int = 0
    sd: float = math.nan
    p: float = math.nan
    low: float = math.nan
    high: float = math.nan
    flips: float = math.nan
    d: float = math.nan


def images_test(differences: Values, chance: Resampling) -> list[ImageTest]:
    """For each row of differences (c, n): a paired permutation test and a percentile bootstrap, images as units.

    Under the null hypothesis that two systems are exchangeable on every image, the sign of each difference is a fair
    coin. All 2^n signs are gone through where they are no more than the resamples.
    Order of images does not matter, and swapping the systems mirrors every number exactly: each row is turned and
    sorted into one form before chance is drawn, from the same seed for all.
    """
    if not len(differences):
        return []
    turned = [_turned(row) for row in differences]
    rows = np.array([np.sort(sign * row) for sign, row in zip(turned, differences, strict=True)])
    parts = [_resampled(rows[start : start + _AT_ONCE], chance) for start in range(0, len(rows), _AT_ONCE)]
    p, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = []
    for place, sign in enumerate(turned):
        least, most = sorted((float(sign * low[place]), float(sign * high[place])))
        found.append(ImageTest(float(p[place]), least, most, effect(differences[place])))
    return found


def seeds_test(a: Values, b: Values, chance: Resampling) -> SeedTest:
    """a, b: (n,) the metric of two systems, the same seeds in the same order."""
    d = a - b
    if len(d) < 2:
        return SeedTest(len(d))
    flips = float(stats.permutation_test((d,), _mean, **_flipping(chance, len(d))).pvalue)
    if _equal(d, max(np.abs(a).max(), np.abs(b).max())):
        zero = 1.0 if abs(d.mean()) <= _EQUAL * max(np.abs(a).max(), 1e-300) else math.nan
        ends = 0.0 if zero == 1.0 else math.nan
        return SeedTest(len(d), 0.0, zero, ends, ends, flips, ends)
    test = stats.ttest_rel(a, b)
    low, high = test.confidence_interval(chance.level)
    return SeedTest(len(d), float(d.std(ddof=1)), float(test.pvalue), float(low), float(high), flips, effect(d))


def effect(differences: Values) -> float:
    """d_z: mean of paired differences / their sd (ddof 1). 0 where all are 0, NaN where all are another number."""
    if _equal(differences, np.abs(differences).max()):
        return math.nan if differences.any() else 0.0
    return float(differences.mean() / differences.std(ddof=1))


def holm(p: Values) -> Values:
    """max over j ≤ i of (m − j + 1) · p₍ⱼ₎, at most 1, p sorted: Holm's correction for the m that are not NaN."""
    found = np.full(len(p), math.nan)
    places = np.flatnonzero(~np.isnan(p))
    order = places[np.argsort(p[places], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return found


def _resampled(rows: Values, chance: Resampling) -> tuple[Values, Values, Values]:
    p = stats.permutation_test((rows,), _mean, **_flipping(chance, rows.shape[1])).pvalue
    low, high = stats.bootstrap(
        (rows,), _mean, vectorized=True, axis=-1, n_resamples=chance.resamples, batch=_batch(rows.shape[1]),
        confidence_level=chance.level, method="percentile", rng=np.random.default_rng(chance.seed),
    ).confidence_interval  # fmt: skip
    return p, low, high


def _flipping(chance: Resampling, n: int) -> dict[str, object]:
    """Of one sample, scipy's permutation of `samples` flips signs."""
    return {
        "permutation_type": "samples", "vectorized": True, "axis": -1, "n_resamples": chance.resamples,
        "batch": _batch(n), "rng": np.random.default_rng(chance.seed),
    }  # fmt: skip


def _mean(x: Values, axis: int) -> Values:
    return np.asarray(x.mean(axis=axis))


def _batch(n: int) -> int:
    """Resamples at a time; by n alone, so that a comparison comes out the same whatever stands beside it."""
    return max(1, _CELLS // n)


def _turned(row: Values) -> float:
    """1 or −1: the sign that makes a row the later of itself and its negative, both sorted."""
    one, other = np.sort(row), np.sort(-row)
    differing = np.flatnonzero(one != other)
    return -1.0 if len(differing) and one[differing[0]] < other[differing[0]] else 1.0


def _equal(values: Values, size: float) -> bool:
    return bool(np.ptp(values) <= _EQUAL * size)
