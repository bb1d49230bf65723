"""Is Cohen's kappa that of scikit-learn, and does its interval cover?"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from lossscope.audit.estimate.kappa import agreement, cohen_kappa


def answers(n: int, seed: int, alike: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    first = random.random(n) < 0.3
    return first, np.where(random.random(n) < alike, first, ~first)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    first, second = answers(40, seed)
    assert cohen_kappa(first, second).value == pytest.approx(cohen_kappa_score(first, second))


def test_the_interval_is_as_wide_as_kappa_scatters() -> None:
    found = [cohen_kappa(*answers(200, seed)) for seed in range(300)]
    widths = [kappa.high - kappa.low for kappa in found if kappa.low is not None and kappa.high is not None]
    scatter = np.std([kappa.value for kappa in found])
    assert np.mean(widths) / (2 * 1.96) == pytest.approx(scatter, rel=0.12)


def test_what_does_not_define_a_number_has_none() -> None:
    one_kind, none = np.ones(5, bool), np.zeros(0, bool)
    assert np.isnan(cohen_kappa(one_kind, one_kind).value)
    assert np.isnan(cohen_kappa(none, none).value)
    same = np.array([True, False] * 3)
    alike = cohen_kappa(same, same)
    assert (alike.value, alike.low) == (1, None), "its standard error would be 0"


def test_agreements_are_counted() -> None:
    found = agreement(("a.csv", "b.csv"), [True, False, True], [True, True, True])
    assert (found.pairs, found.alike) == (3, 2)
