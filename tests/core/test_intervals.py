"""Do intervals follow from sums over items?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lossscope.core.intervals import FLOOR, ItemSums, add_sums, t_quantile
from tests.each import each


def sums(seed: int, n: int = 30, effects: float = 0.0, overlap: float = 0.0) -> ItemSums:
    random = np.random.default_rng(seed)
    weights = random.integers(1, 6, n).astype(float)
    return ItemSums(weights, weights * random.normal(3, 1, n), effects * random.normal(size=n), overlap)


def test_without_effects_it_is_the_t_interval_of_clusters_of_one_query() -> None:
    y = np.random.default_rng(0).normal(size=40)
    low, high = ItemSums(np.ones(40), y, np.zeros(40), 0.0).interval()
    expected = stats.ttest_1samp(y, 0).confidence_interval()
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_effects_widen_it_and_overlap_narrows_it_but_never_far_below_the_queries_alone() -> None:
    alone, hubs = sums(0).variance, sums(0, effects=20.0).variance
    assert hubs > 2 * alone
    assert alone < sums(0, effects=20.0, overlap=1000.0).variance < hubs
    assert sums(0, effects=20.0, overlap=1e9).variance == pytest.approx(FLOOR * alone)


def test_batches_that_deviate_less_than_predicted_narrow_it_to_their_own_deviation() -> None:
    """The median of each of many batches got the interval of the median of all numbers."""
    total = sums(0).weights.sum()
    alone, n = sums(0).variance * total**2 * 29 / 30, 30
    for predicted, observed in ((0.5, 0.2), (0.2, 0.5), (1.5, 0.3), (0.0, 0.0)):
        totals = replace(sums(0), predicted=predicted * alone, observed=observed * alone)
        expected = max(1 + observed - predicted, observed) * alone * n / (n - 1) / total**2
        assert totals.variance == pytest.approx(expected)


def test_much_overlap_leaves_fewer_degrees_of_freedom() -> None:
    assert sums(0).degrees_of_freedom == 29
    few = sums(0, effects=20.0, overlap=9000.0)
    assert 1 <= few.degrees_of_freedom < 29
    half = (few.interval().high - few.interval().low) / 2
    assert half > stats.t.ppf(0.975, 29) * math.sqrt(few.variance)


@each("level", [0.5, 0.68, 0.9, 0.95, 0.99, 0.999])
def test_a_quantile_of_t_is_that_of_scipy_stats_bit_by_bit(level: float) -> None:
    freedoms = [1, 2, 3.7, 23, 598, 1e5, 1e9, math.inf]
    assert [t_quantile(level, freedom) for freedom in freedoms] == list(stats.t.ppf((1 + level) / 2, freedoms))
    assert math.isnan(t_quantile(level, 0)) and math.isnan(t_quantile(level, math.nan))


def test_a_level_and_a_centre() -> None:
    totals = sums(1)
    narrow, wide = totals.interval(level=0.5), totals.interval(level=0.99)
    assert wide.low < narrow.low < totals.mean < narrow.high < wide.high
    moved = totals.interval(centre=10.0)
    assert (moved.low + moved.high) / 2 == pytest.approx(10.0)
    assert moved.high - moved.low == pytest.approx(totals.interval().high - totals.interval().low)


@each("values", [np.zeros(20), np.full(20, 0.1), np.full(20, 1e-9)])
def test_numbers_that_are_all_alike_have_no_interval(values: np.ndarray) -> None:
    """A count of 0 in each query would give an interval of width 0, which no sample can prove."""
    assert math.isnan(ItemSums(np.ones(20), values, np.zeros(20), 0.0).interval().low)


def test_a_count_that_is_0_in_every_query_has_none_where_candidates_could_change_it() -> None:
    """C_0 of 0 had an interval, computed from queries that only one candidate keeps from being idle."""
    effects = np.random.default_rng(0).normal(size=20)
    assert math.isnan(ItemSums(np.ones(20), np.zeros(20), effects, 0.0).interval().low)


def test_one_unit_or_none_has_no_interval() -> None:
    single = ItemSums(np.array([3.0, 0.0]), np.array([4.0, 0.0]), np.zeros(2), 0.0)
    none = ItemSums(np.zeros(2), np.zeros(2), np.zeros(2), 0.0)
    assert math.isnan(single.interval().low) and math.isnan(none.interval().low) and math.isnan(none.mean)


@given(seed=st.integers(0, 1000), order=st.permutations(range(4)))
def test_parts_add_up_in_any_order(seed: int, order: list[int]) -> None:
    parts = [sums(seed + k, effects=1.0, overlap=2.0) for k in range(4)]
    total, other = add_sums(parts), add_sums([parts[k] for k in order])
    assert total.overlap == 8.0 and total.mean == pytest.approx(other.mean)
    assert total.variance == pytest.approx(other.variance)
    assert parts[0].overlap == 2.0  # parts stay as they were


@given(seed=st.integers(0, 1000), scale=st.floats(0.01, 100))
def test_the_interval_scales_with_the_numbers(seed: int, scale: float) -> None:
    totals = sums(seed, effects=2.0, overlap=5.0)
    scaled = ItemSums(totals.weights, scale * totals.values, scale * totals.effects, scale**2 * totals.overlap)
    assert scaled.interval() == pytest.approx(tuple(scale * end for end in totals.interval()), rel=1e-9, abs=1e-12)
