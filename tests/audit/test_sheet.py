"""The sheet has as many pairs as were asked for, each once, the same ones for one seed, and some of every stratum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.audit.estimate.sheet import draw_sheet


@given(st.integers(0, 400), st.integers(0, 3), st.integers(1, 120), st.integers(0, 20), st.booleans())
@settings(max_examples=60)
def test_pairs_of_the_sheet_are_different_and_as_many_as_there_can_be(
    n: int, k: int, size: int, seed: int, ties: bool
) -> None:
    random = np.random.default_rng(seed)
    logit, Z = random.normal(size=n), random.normal(size=(n, k))
    logit = logit.round() if ties else logit
    sheet = draw_sheet(logit, Z, size, seed)
    assert len(sheet) == min(n, size)
    assert len(set(sheet.tolist())) == len(sheet)
    assert all(0 <= one < n for one in sheet.tolist())
    np.testing.assert_array_equal(sheet, draw_sheet(logit, Z, size, seed))


def test_probable_pairs_and_high_signals_are_seen_far_more_often_than_by_chance() -> None:
    random = np.random.default_rng(0)
    n = 100_000
    logit, Z = random.normal(size=n), random.normal(size=(n, 4))
    sheet = draw_sheet(logit, Z, 100, 0)
    top = np.argsort(-logit)[: n // 1000]
    assert len(set(sheet.tolist()) & set(top.tolist())) >= 10
    for column in Z.T:
        highest = np.argsort(-column)[: 3 * n // 1000]
        assert len(set(sheet.tolist()) & set(highest.tolist())) >= 2
    assert (logit[sheet] < np.median(logit)).any()


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_draws_other_pairs(seed: int) -> None:
    random = np.random.default_rng(0)
    logit, Z = random.normal(size=5000), random.normal(size=(5000, 2))
    assert set(draw_sheet(logit, Z, 50, 0).tolist()) != set(draw_sheet(logit, Z, 50, seed).tolist())
