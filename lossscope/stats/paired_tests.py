"""Is a mean difference of pairs more than chance? Tests, intervals and effect sizes, computed by scipy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from .options import Resampling

Values = npt.NDArray[np.float64]
_COMPARISONS_PER_CALL = 16  # of scipy
_DIFFERENCES_AT_A_TIME = 200_000  # resampled together, for each comparison
_SAME_MEAN = 100 * float(np.finfo(np.float64).eps)  # relative distance within which two means of flips are equal
_EQUAL = 1e-9  # relative tolerance within which differences count as equal: recalls are multiples of 100 / N


@dataclass(frozen=True)
class ImageTest:
    """Test of a comparison with images as units; NaN where it is not defined."""

    p: float = math.nan  # two-sided, of a permutation test that flips signs of differences
    low: float = math.nan  # bootstrap interval of the mean difference
    high: float = math.nan
    d: float = math.nan  # d_z = mean / sd of differences
    sd: float = math.nan  # of the differences, ddof 1
    p_at_floor: bool = False  # whether p is the smallest that the resamples can give: the true p is at most that


@dataclass(frozen=True)
class SeedTest:
    """Test of a comparison with seeds as units; NaN where n pairs, or equal differences, do not define it."""

    n: int = 0  # number of pairs
    sd: float = math.nan  # of the differences, ddof 1
    p: float = math.nan  # of a paired t-test
    low: float = math.nan  # interval of the t-test
    high: float = math.nan
    flips: float = math.nan  # p by sign flips, exact where 2^n is at most the number of resamples
    d: float = math.nan  # d_z = mean / sd of the differences


def images_test(differences: Values, resampling: Resampling) -> list[ImageTest]:
    """Test each row of differences (c, n), images as units: a paired permutation test and a percentile bootstrap.

    Under the null hypothesis that two systems are exchangeable on every image, the sign of each difference is a fair
    coin. All 2^n sign patterns are enumerated where they are no more than the resamples.
    The order of images does not matter, and swapping the systems mirrors every number exactly: each row is brought to
    one sign and sorted before it is resampled, with the same seed for all rows.
    """
    if not len(differences):
        return []
    signs = [_canonical_sign(row) for row in differences]
    rows = np.array([np.sort(sign * row) for sign, row in zip(signs, differences, strict=True)])
    size = _COMPARISONS_PER_CALL
    parts = [_resample(rows[start : start + size], resampling) for start in range(0, len(rows), size)]
    p, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    tests = []
    for row, sign in enumerate(signs):
        least, most = sorted((float(sign * low[row]), float(sign * high[row])))
        at_floor = bool(p[row] <= _floor(differences.shape[1], resampling))
        d, sd = effect_size(differences[row]), deviation(differences[row])
        tests.append(ImageTest(float(p[row]), least, most, d, sd, at_floor))
    return tests


def seeds_test(a: Values, b: Values, resampling: Resampling) -> SeedTest:
    """Test the differences of two systems, seeds as units: a paired t-test and a sign-flip test.

    Args:
        a: (n,) the metric of one system, a number per seed.
        b: (n,) the metric of the other, the same seeds in the same order.
        resampling: of the sign-flip test; its level is that of the interval.
    """
    d = a - b
    if len(d) < 2:
        return SeedTest(len(d))
    flips = float(stats.permutation_test((d,), _mean, **_sign_flips(resampling, len(d))).pvalue)
    if np.ptp(d) <= equal_within(a, b):
        p = 1.0 if abs(d.mean()) <= _EQUAL * max(np.abs(a).max(), 1e-300) else math.nan
        zero = 0.0 if p == 1.0 else math.nan
        return SeedTest(len(d), 0.0, p, zero, zero, flips, zero)
    test = stats.ttest_rel(a, b)
    low, high = test.confidence_interval(resampling.level)
    return SeedTest(len(d), float(d.std(ddof=1)), float(test.pvalue), float(low), float(high), flips, effect_size(d))


def effect_size(differences: Values) -> float:
    """d_z = mean of paired differences / their sd (ddof 1); 0 where all are 0, NaN where all are another number."""
    if _all_equal(differences, np.abs(differences).max()):
        return math.nan if differences.any() else 0.0
    return float(differences.mean() / differences.std(ddof=1))


def deviation(differences: Values) -> float:
    """Return the standard deviation of differences, ddof 1: 0 where all are equal, NaN of fewer than two."""
    if len(differences) < 2:
        return math.nan
    return 0.0 if _all_equal(differences, np.abs(differences).max()) else float(differences.std(ddof=1))


def equal_within(a: Values, b: Values) -> float:
    """Return the distance within which differences of the numbers of a and b count as equal."""
    return float(_EQUAL * max(np.abs(a).max(), np.abs(b).max()))


def smallest_p(n: int, resampling: Resampling) -> float:
    """2 / min(2ⁿ, resamples + 1): the smallest two-sided p that sign flips of n differences can give."""
    return 2 / min(2.0**n if n < 64 else math.inf, resampling.resamples + 1)


def holm(p: Values) -> Values:
    """max over j ≤ i of (m − j + 1) · p₍ⱼ₎, at most 1, p sorted: Holm's correction for the m that are not NaN."""
    corrected = np.full(len(p), math.nan)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected


def _resample(rows: Values, resampling: Resampling) -> tuple[Values, Values, Values]:
    """Return p, low and high of each row of differences."""
    p = _sign_flip_p(rows, resampling)
    low, high = stats.bootstrap(
        (rows,), _mean, vectorized=True, axis=-1, n_resamples=resampling.resamples,
        batch=resamples_at_a_time(rows.shape[1]), confidence_level=resampling.level, method="percentile",
        rng=np.random.default_rng(resampling.seed),
    ).confidence_interval  # fmt: skip
    return p, low, high


def _sign_flip_p(rows: Values, resampling: Resampling) -> Values:
    """(r,) two-sided p of each row of differences (r, n): that of scipy's permutation test, from the same flips.

    Where flips are drawn, scipy takes a step for every difference in every batch of flips, and batches are the smaller
    the more differences there are: its time grows with n². Here it grows with n.
    """
    n, resamples = rows.shape[1], resampling.resamples
    if _enumerates(n, resampling):
        p: Values = stats.permutation_test((rows,), _mean, **_sign_flips(resampling, n)).pvalue
        return p
    rng, batch, observed = np.random.default_rng(resampling.seed), resamples_at_a_time(n), rows.mean(1)
    is_flipped = np.tile(np.arange(2), (min(batch, resamples), n, 1))
    equal = _SAME_MEAN * np.abs(observed)
    at_most, at_least = np.ones(len(rows)), np.ones(len(rows))  # what was measured is one of the patterns
    for start in range(0, resamples, batch):
        signs = 1.0 - 2.0 * rng.permuted(is_flipped, axis=-1)[: resamples - start, :, 0]
        means = signs @ rows.T / n
        at_most += (means <= observed + equal).sum(0)
        at_least += (means >= observed - equal).sum(0)
    return np.minimum(2 * np.minimum(at_most, at_least) / (resamples + 1), 1.0)


def _enumerates(n: int, resampling: Resampling) -> bool:
    """Return whether all 2^n patterns of signs of n differences are enumerated, not drawn."""
    return n < 64 and 2.0**n <= resampling.resamples


def _floor(n: int, resampling: Resampling) -> float:
    """2 / (resamples + 1), the smallest two-sided p of random sign flips; 0 where all 2^n are enumerated."""
    return 0.0 if _enumerates(n, resampling) else (2 + _EQUAL) / (resampling.resamples + 1)


def _sign_flips(resampling: Resampling, n: int) -> dict[str, object]:
    """Return options of scipy's permutation test: of one sample, permutation type `samples` flips signs."""
    return {
        "permutation_type": "samples", "vectorized": True, "axis": -1, "n_resamples": resampling.resamples,
        "batch": resamples_at_a_time(n), "rng": np.random.default_rng(resampling.seed),
    }  # fmt: skip


def _mean(x: Values, axis: int) -> Values:
    return np.asarray(x.mean(axis=axis))


def resamples_at_a_time(n: int) -> int:
    """Return the resamples at a time; by n alone, so that a comparison does not depend on the others of the call."""
    return max(1, _DIFFERENCES_AT_A_TIME // n)


def _canonical_sign(row: Values) -> float:
    """Return 1 or −1, the sign that makes a row the later of itself and its negative, both sorted."""
    positive, negative = np.sort(row), np.sort(-row)
    differing = np.flatnonzero(positive != negative)
    return -1.0 if len(differing) and positive[differing[0]] < negative[differing[0]] else 1.0


def _all_equal(values: Values, scale: float) -> bool:
    return bool(np.ptp(values) <= _EQUAL * scale)
