"""Does the interval of P(A > B) hold for each number of seeds, also with ties, and is it binomial?"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lossscope.stats.superiority import superiority
from tests.each import each

Oracle = Callable[[str], ModuleType]


def of_wins(wins: int, n: int, ties: int = 0, level: float = 0.95) -> tuple[float, float, float]:
    a = np.array([1.0] * wins + [0.0] * ties + [-1.0] * (n - wins - ties))
    better = superiority(a, np.zeros(n), level)
    return better.p, better.low, better.high


@each("n", [2, 3, 5, 10, 30])
def test_the_interval_is_the_binomial_one(n: int, oracle: Oracle) -> None:
    for wins in range(n + 1):
        assert of_wins(wins, n)[1:] == pytest.approx(oracle("power").binomial_interval(wins, n, 0.95), abs=1e-9)
        assert of_wins(wins, n)[0] == wins / n


@each("n", range(2, 13))
def test_the_interval_holds_for_every_share(n: int) -> None:
    """The exact coverage sums over all numbers of wins; no simulation is necessary."""
    ends = [of_wins(wins, n)[1:] for wins in range(n + 1)]
    for share in np.linspace(0.001, 0.999, 333):
        held = [low <= share <= high for low, high in ends]
        assert stats.binom.pmf(np.arange(n + 1), n, share) @ held >= 0.95 - 1e-12


@each("n", range(2, 9))
def test_the_interval_holds_where_there_are_ties(n: int) -> None:
    """The interval of P(A > B) + P(A = B) / 2, by the exact coverage over all numbers of wins and ties."""
    cells = [(wins, ties) for wins in range(n + 1) for ties in range(n + 1 - wins)]
    ends = [of_wins(wins, n, ties)[1:] for wins, ties in cells]
    for win in np.linspace(0, 1, 11):
        for tie in np.linspace(0, 1 - win, 5):
            chances = stats.multinomial(n, [win, tie, max(1 - win - tie, 0.0)])
            covered = sum(
                float(chances.pmf([wins, ties, n - wins - ties]))
                for (wins, ties), (low, high) in zip(cells, ends, strict=True)
                if low - 1e-12 <= win + tie / 2 <= high + 1e-12
            )
            assert covered >= 0.95 - 1e-9


def test_three_wins_of_three_show_little() -> None:
    assert of_wins(3, 3) == (1.0, pytest.approx(0.2924, abs=1e-4), 1.0)
    assert of_wins(5, 5)[1] < 0.5 < of_wins(6, 6)[1]  # as in the sign-flip test, six seeds are the fewest


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=2, max_size=12))
def test_swapping_systems_mirrors_it_and_order_does_not_matter(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    forward, backward, sorted_ = superiority(a, b, 0.9), superiority(b, a, 0.9), superiority(a[::-1], b[::-1], 0.9)
    assert forward == sorted_
    assert (forward.p, forward.low, forward.high) == pytest.approx(
        (1 - backward.p, 1 - backward.high, 1 - backward.low)
    )
    assert forward.low <= forward.p <= forward.high


def test_differences_in_the_last_bits_are_ties() -> None:
    better = superiority(np.array([0.1 + 0.2, 1.0]), np.array([0.3, 0.5]), 0.95)
    assert better.p == 0.75


def test_one_seed_says_nothing() -> None:
    single = superiority(np.array([2.0]), np.array([1.0]), 0.95)
    assert all(math.isnan(number) for number in (single.p, single.low, single.high))
