"""Are means over batches of unequal size the means over queries, and is a short last batch in no deviation?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.io.batch_groups import BatchGroup
from tests.each import each


def rows(sizes: list[int], convention: str | None = "corrected") -> pd.DataFrame:
    return pd.DataFrame({"queries": sizes, "items": sizes, "batch_size": max(sizes), "convention": convention})


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 7), st.randoms())
def test_the_mean_is_that_of_all_queries(batches: int, size: int, last: int, random: np.random.RandomState) -> None:
    sizes = [size] * batches + ([last % size] if last % size else [])
    queries = [[random.random() for _ in range(n)] for n in sizes]
    group = BatchGroup.of(rows(sizes))
    of_batches = np.array([np.mean(values) for values in queries])
    assert float(group.mean(of_batches)) == pytest.approx(np.mean([x for values in queries for x in values]))


def test_the_short_batch_is_in_no_deviation_and_is_named() -> None:
    group = BatchGroup.of(rows([128, 128, 80]))
    values = np.array([10.0, 12.0, 3.0])
    assert float(group.std(values)) == 1.0
    assert (group.short_batch, group.n_spread(values)) == (80, 2)
    assert float(group.mean(values)) == pytest.approx((128 * 10 + 128 * 12 + 80 * 3) / 336)


def test_totals_of_a_batch_are_averaged_over_full_batches() -> None:
    group = BatchGroup.of(rows([128, 128, 80]))
    assert float(group.mean_of_totals(np.array([128.0, 128.0, 80.0]))) == 128.0
    assert float(BatchGroup.of(rows([128, 80], "released")).mean_of_totals(np.array([128.0, 80.0]))) == 104.0
    assert float(BatchGroup.of(rows([80])).mean_of_totals(np.array([80.0]))) == 80.0


def test_as_published_every_batch_counts_alike() -> None:
    group = BatchGroup.of(rows([128, 128, 80], "released"))
    values = np.array([10.0, 12.0, 3.0])
    assert float(group.mean(values)) == pytest.approx(25 / 3)
    assert float(group.std(values)) == pytest.approx(values.std())
    assert group.short_batch is None


@each("sizes", [[128], [128, 80]])
def test_one_full_batch_has_no_deviation(sizes: list[int]) -> None:
    assert np.isnan(BatchGroup.of(rows(sizes, None)).std(np.ones(len(sizes))))


def test_undefined_batches_are_left_out() -> None:
    group = BatchGroup.of(rows([4, 4, 4]))
    values = np.array([1.0, np.nan, 3.0])
    assert (float(group.mean(values)), float(group.std(values)), group.n_spread(values)) == (2.0, 1.0, 2)
    assert np.isnan(group.mean(np.full(3, np.nan)))


def test_curves_are_averaged_point_by_point() -> None:
    group = BatchGroup.of(rows([2, 2, 1]))
    curves = np.array([[1.0, 2.0], [3.0, 4.0], [8.0, 8.0]])
    assert group.mean(curves).tolist() == pytest.approx([(2 + 6 + 8) / 5, (4 + 8 + 8) / 5])
    assert group.std(curves).tolist() == [1.0, 1.0]
