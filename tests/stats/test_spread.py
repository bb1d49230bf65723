"""Is a spread the sample standard deviation, with an interval that follows scale, but not order or location?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.stats.options import Resampling
from lossscope.stats.power import sd_interval
from lossscope.stats.spread import spread_of_images, spread_of_seeds

QUICK = Resampling(resamples=199)


def test_over_seeds_it_is_the_sample_deviation_with_the_interval_of_chi_square() -> None:
    a, b = np.random.default_rng(0).normal(300, 4, (2, 4))
    spread = spread_of_seeds(a, b, 0.9)
    assert (spread.n, spread.sd) == (4, pytest.approx(np.std(a - b, ddof=1)))
    assert (spread.low, spread.high) == pytest.approx(sd_interval(spread.sd, 4, 0.9))
    assert (spread.method, spread.note) == ("chi-square, seeds", "")


def test_no_spread_says_why() -> None:
    single = spread_of_seeds(np.array([1.0]), np.array([2.0]), 0.95)
    assert (single.n, single.note) == (1, "one seed: seed variance unknown") and math.isnan(single.sd)
    same = spread_of_seeds(np.array([3.0, 4.0]), np.array([1.0, 2.0]), 0.95)
    assert (same.sd, same.note) == (0.0, "the same difference in every seed: no spread to plan by")
    none = spread_of_images(np.full(9, 2.0), "queries", QUICK)
    assert (none.sd, none.note) == (0.0, "the same difference in all queries: no spread to plan by")
    assert math.isnan(none.low) and math.isnan(single.low) and math.isnan(same.low)


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 60), st.floats(0.01, 100), st.floats(-50, 50))
def test_over_images_order_and_location_do_not_matter_and_scale_does(n: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=n)
    plain, other = (spread_of_images(x, "images", QUICK) for x in (values, scale * rng.permutation(values) + shift))
    assert plain.low <= plain.high and plain.n == n and plain.method == "percentile bootstrap, images"
    assert (other.sd, other.low, other.high) == pytest.approx(
        (scale * plain.sd, scale * plain.low, scale * plain.high), rel=1e-6
    )


def test_over_many_images_the_interval_is_the_normal_one() -> None:
    spread = spread_of_images(np.random.default_rng(1).normal(0, 3, 4000), "images", Resampling(resamples=1999))
    error = spread.sd / math.sqrt(2 * 4000)
    assert (spread.low, spread.high) == pytest.approx((spread.sd - 1.96 * error, spread.sd + 1.96 * error), abs=0.01)
