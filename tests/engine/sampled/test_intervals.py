"""Does a sample's interval hold the population's number? Against each possible sample, and the textbook."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lossscope.engine.reducers import drawn_interval, reduce_column
from lossscope.engine.sampled.draw import draw_queries
from lossscope.engine.sampled.estimates import method_of
from lossscope.engine.sampled.intervals import DrawnNumbers
from lossscope.probes.base import ReducerName, Statistic

REDUCERS: tuple[ReducerName, ...] = (
    "mean",
    "mean_nonzero",
    "sum",
    "zeros",
    "true",
    "q10",
    "q50",
    "q90",
    "floor_median",
)
EXACT: tuple[ReducerName, ...] = ("zeros", "true", "q10", "q50", "q90", "floor_median")


def interval(
    value: float, values: np.ndarray[Any, Any], usable: np.ndarray[Any, Any], reducer: ReducerName, N: int, top: float
) -> tuple[float, float]:
    return drawn_interval(reducer, DrawnNumbers(value, values, usable & ~np.isnan(values), N, top, 0.95))


def value_of(values: np.ndarray[Any, Any], usable: np.ndarray[Any, Any], reducer: ReducerName) -> float:
    """Return the statistic of a whole batch, as a sweep reports it."""
    import torch

    columns = {"x": torch.from_numpy(values), "skipped": torch.from_numpy(~usable)}
    return float(reduce_column(Statistic("x", "x", reducer, ""), columns, 1)[0])


@pytest.mark.parametrize("reducer", EXACT)
@pytest.mark.parametrize(("N", "n"), [(10, 4), (9, 7)])
def test_exact_intervals_hold_in_nineteen_of_twenty_of_all_samples(reducer: ReducerName, N: int, n: int) -> None:
    """For each set, not on average over sets; the sets have distinct values, ties and zeros."""
    random = np.random.default_rng(N)
    usable = np.ones(n, bool)
    tied, shares = random.integers(0, 3, N).astype(float), (np.arange(N) < N // 3).astype(float)
    for population in (shares,) if reducer == "true" else (np.arange(N) + 0.5, tied, shares):
        truth, held = value_of(population, np.ones(N, bool), reducer), 0
        for sample in combinations(population, n):
            low, high = interval(0.0, np.array(sample), usable, reducer, N, 0)
            held += np.isnan(low) or low <= truth <= high
        assert held >= 0.95 * comb(N, n)


def test_a_share_holds_in_nineteen_of_twenty_of_all_samples() -> None:
    population = np.repeat([0.0, 100.0], [6, 2])
    held = 0
    for sample in combinations(population, 4):
        low, high = interval(float(np.mean(sample)), np.array(sample), np.ones(4, bool), "mean", 8, 100.0)
        held += low <= 25 <= high
    assert held >= 0.95 * comb(8, 4)


def test_the_sum_of_a_share_holds_where_queries_are_left_out() -> None:
    """The number of skipped queries is random, too: over all samples of a set with half of its queries skipped."""
    population, usable = np.repeat([1.0, 0, np.nan], [5, 1, 6]), np.repeat([True, False], 6)
    held = 0
    for drawn in combinations(range(12), 6):
        query_index = np.array(drawn)
        low, high = interval(0.0, population[query_index], usable[query_index], "sum", 12, 1.0)
        held += low <= 5 <= high
    assert held >= 0.95 * comb(12, 6)


def test_the_mean_is_the_textbooks() -> None:
    """ȳ ± t s / √n · √(1 − n/N), Cochran 1977, 2.13."""
    values = np.array([1.0, 4, 2, 8, 5, 7])
    half = stats.t.ppf(0.975, 5) * values.std(ddof=1) / sqrt(6) * sqrt(1 - 6 / 40)
    low, high = interval(values.mean(), values, np.ones(6, bool), "mean", 40, 0)
    assert low == pytest.approx(values.mean() - half) and high == pytest.approx(values.mean() + half)
    low, high = interval(40 * values.mean(), values, np.ones(6, bool), "sum", 40, 0)
    assert (high - low) / 2 == pytest.approx(40 * half)


def test_a_mean_over_some_queries_is_a_ratio() -> None:
    """R = Σ y / Σ z, var = (1 − n/N) / (n z̄²) Σ (y − R z)² / (n − 1), Cochran 1977, 6.9; loops, not arrays."""
    values = np.array([0.0, 3, 0, 5, 1, 0, 9])
    y = [v if v > 0 else 0.0 for v in values]
    z = [1.0 if v > 0 else 0.0 for v in values]
    R, share = sum(y) / sum(z), sum(z) / 7
    variance = (1 - 7 / 50) / (7 * share**2) * sum((a - R * b) ** 2 for a, b in zip(y, z, strict=True)) / 6
    half = stats.t.ppf(0.975, 3) * sqrt(variance)
    low, high = interval(R, values, np.ones(7, bool), "mean_nonzero", 50, 0)
    assert (low, high) == (pytest.approx(R - half), pytest.approx(R + half))
    usable = np.array([False, True, False, True, True, False, True])
    assert interval(R, np.where(usable, values, 3.0), usable, "mean", 50, 0) == pytest.approx((R - half, R + half))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(REDUCERS))
def test_all_queries_have_an_interval_of_width_0(data: st.DataObject, reducer: ReducerName) -> None:
    values = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, np.nan]), min_size=2, max_size=9)))
    usable = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    value = value_of(values, usable, reducer)
    low, high = interval(value, values, usable, reducer, len(values), 0)
    assert (np.isnan(value) and np.isnan(low)) or low == value == high


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=4, max_size=30), st.integers(1, 1000), st.sampled_from(REDUCERS), st.randoms()
)
def test_the_order_of_queries_does_not_matter_and_more_of_the_set_are_no_wider(
    drawn: list[int], rest: int, reducer: ReducerName, random: Any
) -> None:
    values, usable = np.array(drawn, float), np.ones(len(drawn), bool)
    N = len(drawn) + rest
    value = value_of(values, usable, reducer)
    shuffled = values[random.sample(range(len(drawn)), len(drawn))]
    first, second = (interval(value, sample, usable, reducer, N, 0) for sample in (values, shuffled))
    assert first == pytest.approx(second, nan_ok=True)
    if reducer in ("mean", "mean_nonzero"):
        other = interval(value, values, usable, reducer, 2 * N, 0)
        assert np.isnan(first[0]) or other[1] - other[0] >= first[1] - first[0]


def test_equal_values_have_no_interval_unless_they_are_shares() -> None:
    """A deviation of 0 in a sample would claim that the set has no other value."""
    values, usable = np.zeros(20), np.ones(20, bool)
    assert np.isnan(interval(0.0, values, usable, "mean", 100, 0)[0])
    low, high = interval(0.0, values, usable, "mean", 100, 1.0)
    assert low == 0 and 0.02 < high < 0.2
    assert comb(84, 20) / comb(100, 20) < 0.025 < comb(85, 20) / comb(100, 20)  # P(20 zeros of 20) if 84, 85 are 0
    assert interval(100.0, values, usable, "zeros", 100, 0) == (85.0, 100.0)


def test_rare_counts_have_no_t_interval() -> None:
    """3 % of queries with skewed counts: t intervals of 50, 200 and 400 held in 73, 83 and 89 of 100 samples."""
    random = np.random.default_rng(0)
    population = np.where(random.random(20_000) < 0.03, np.ceil(random.lognormal(1, 1.5, 20_000)), 0.0)
    for n, with_interval in ((50, 0), (200, 0), (400, 0), (6_000, 50)):
        samples = [random.choice(population, n, replace=False) for _ in range(50)]
        ends = [interval(x.mean(), x, np.ones(n, bool), "mean", len(population), 0) for x in samples]
        assert sum(not np.isnan(low) for low, _ in ends) == with_interval
        totals = [interval(x.sum(), x, np.ones(n, bool), "sum", len(population), 0) for x in samples]
        assert [np.isnan(low) for low, _ in totals] == [np.isnan(low) for low, _ in ends]


def test_statistics_without_an_interval() -> None:
    assert np.isnan(interval(1.0, np.array([1.0, 2]), np.ones(2, bool), "max", 9, 0)[0])
    assert np.isnan(interval(1.0, np.array([1.0, 2]), np.zeros(2, bool), "mean", 9, 0)[0])
    assert method_of(Statistic("x", "x", "max", "1")) is None
    assert method_of(Statistic("x", "x", "mean", "1", is_share=True)) == "sampled queries, hypergeometric"


@pytest.mark.parametrize(("N", "n"), [(10, 3), (1000, 999), (7, 7), (1_000_000_000, 50)])
def test_a_larger_sample_contains_a_smaller_one(N: int, n: int) -> None:
    whole = draw_queries(N, 0, n, 5, "t2i")
    assert len(np.unique(whole)) == n and whole.min() >= 0 and whole.max() < N and (np.diff(whole) > 0).all()
    parts = [draw_queries(N, a, b, 5, "t2i") for a, b in ((0, n // 3), (n // 3, n))]
    assert np.array_equal(np.sort(np.concatenate(parts)), whole)
    assert n == N or not np.array_equal(whole, draw_queries(N, 0, n, 6, "t2i"))
    assert n == N or not np.array_equal(whole, draw_queries(N, 0, n, 5, "i2t"))


def test_every_query_is_drawn_equally_often() -> None:
    drawn = np.concatenate([draw_queries(30, 0, 6, seed, "i2t") for seed in range(2000)])
    assert stats.chisquare(np.bincount(drawn, minlength=30)).pvalue > 1e-4
