"""Do random sign flips give the p of scipy's permutation test, in time that grows with the number of differences?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from lossscope.stats import paired_tests
from lossscope.stats.options import Resampling
from lossscope.stats.paired_tests import images_test
from tests.each import each


def p_of_scipy(rows: np.ndarray, resampling: Resampling) -> list[float]:
    """Return p of scipy's permutation test with sign flips."""
    p: list[float] = stats.permutation_test(
        (rows,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", vectorized=True, axis=-1,
        n_resamples=resampling.resamples, batch=37, rng=np.random.default_rng(resampling.seed),
    ).pvalue.tolist()  # fmt: skip
    return p


@each("n", [14, 60, 300], "kind", ["normal", "recalls", "ranks", "equal", "zero"], "at_a_time", [999, 200_000])
def test_p_is_that_of_scipy(n: int, kind: str, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, resampling = np.random.default_rng(1), Resampling(199, seed=3)
    rows = {
        "normal": rng.normal(0.1, 1.0, (5, n)),
        "recalls": 100.0 * rng.integers(-1, 2, (5, n)),
        "ranks": rng.integers(-30, 34, (5, n)).astype(np.float64),
        "equal": np.full((2, n), 2.0),
        "zero": np.zeros((2, n)),
    }[kind]
    monkeypatch.setattr(paired_tests, "_DIFFERENCES_AT_A_TIME", at_a_time)
    assert paired_tests._sign_flip_p(rows, resampling).tolist() == p_of_scipy(rows, resampling)


def test_no_more_steps_are_taken_for_more_differences_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the images took 16 times as long: scipy takes a Python step for each, in each batch of flips."""
    monkeypatch.setattr(stats, "permutation_test", None)
    draws: list[Any] = []
    original = paired_tests.resamples_at_a_time
    monkeypatch.setattr(paired_tests, "resamples_at_a_time", lambda n: draws.append(n) or original(n))
    (test,) = images_test(np.random.default_rng(0).normal(0.1, 1.0, (1, 5000)), Resampling(199))
    assert test.p < 0.05 and draws
