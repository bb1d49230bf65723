"""Does power equal a sum over all sample deviations, and do its two inverses invert it?"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lossscope.errors import InputError
from lossscope.stats.options import Design
from lossscope.stats.power import pairs_needed, power_of, sd_interval, smallest_effect
from tests.each import each

Oracle = Callable[[str], ModuleType]
DESIGNS = (Design(), Design(0.9, 0.01), Design(0.5, 0.2), Design(0.8, 0.05 / 45))


@each("n", [2, 3, 5, 20, 400], "alpha", [0.05, 0.001], "noncentrality", [0.0, 1.0, 3.0, 8.0])
def test_power_is_the_sum_over_sample_deviations(n: int, alpha: float, noncentrality: float, oracle: Oracle) -> None:
    effect, critical = noncentrality / math.sqrt(n), float(stats.t.isf(alpha / 2, n - 1))
    assert power_of(effect, n, alpha) == pytest.approx(oracle("power").power(effect, n, critical), abs=2e-4)


@each("effect, pairs", [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_pairs_needed_are_those_of_the_textbooks(effect: float, pairs: int) -> None:
    """power.t.test(type = "paired", power = 0.8) in R gives 198.2, 33.4, 14.3 and 9.94 pairs."""
    assert pairs_needed(effect, Design()) == pairs_needed(-effect, Design()) == pairs


@each("design", DESIGNS, "n", [2, 3, 4, 5, 10, 20, 1000, 5000, 10**6, 10**9])
def test_the_smallest_effect_has_the_power_and_takes_n_pairs(n: int, design: Design) -> None:
    effect = smallest_effect(n, design)
    assert power_of(effect, n, design.alpha) == pytest.approx(design.power, abs=1e-9)
    assert power_of(0.99 * effect, n, design.alpha) < design.power
    assert pairs_needed(effect * (1 + 1e-7), design) in ({n} if n < 10**6 else range(n - n // 10**6, n + 1))


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 20), st.floats(0.1, 0.99), st.floats(1e-4, 0.09))
def test_one_pair_fewer_is_too_few(effect: float, power: float, alpha: float) -> None:
    n = pairs_needed(effect, Design(power, alpha))
    assert power_of(effect, n, alpha) >= power - 1e-8
    assert n == 2 or power_of(effect, n - 1, alpha) < power


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 5.0), st.integers(2, 60), st.floats(1e-4, 0.3))
def test_more_pairs_larger_effects_and_higher_levels_have_more_power(effect: float, n: int, alpha: float) -> None:
    power = power_of(effect, n, alpha)
    assert power == power_of(-effect, n, alpha)
    assert alpha - 1e-9 <= power <= 1
    assert power_of(effect, n + 1, alpha) >= power - 1e-9
    assert power_of(1.1 * effect, n, alpha) >= power - 1e-9
    assert power_of(effect, n, min(2 * alpha, 0.9)) >= power


def test_without_an_effect_the_power_is_the_level() -> None:
    assert [power_of(0.0, n, 0.03) for n in (2, 7, 900)] == pytest.approx([0.03] * 3)


def test_a_standard_deviation_of_two_or_three_seeds_is_hardly_known() -> None:
    assert sd_interval(1.0, 2, 0.95) == pytest.approx((0.4461, 31.910), rel=1e-3)  # √(1 / χ²) from printed tables
    assert sd_interval(2.0, 3, 0.95) == pytest.approx((2 * 0.5207, 2 * 6.2850), rel=1e-3)
    assert sd_interval(1.0, 5, 0.95) == pytest.approx((0.5991, 2.8735), rel=1e-3)
    assert np.isnan(sd_interval(1.0, 1, 0.95)).all()


@each("power, alpha, message", [
    (0.8, 0.0, "--alpha must be between 0 and 1; got 0"),
    (0.8, math.nan, "--alpha must be between 0 and 1; got nan"),
    (0.05, 0.05, "--power must be between --alpha, 0.05, and 1; got 0.05"),
    (1.0, 0.05, "--power must be between --alpha, 0.05, and 1; got 1"),
    (math.nan, 0.05, "--power must be between --alpha, 0.05, and 1; got nan"),
])  # fmt: skip
def test_designs_out_of_range(power: float, alpha: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Design(power, alpha)


def test_what_has_no_answer_is_an_error() -> None:
    with pytest.raises(InputError, match="at least 2 pairs; got 1"):
        smallest_effect(1, Design())
    for effect in (0.0, math.nan, math.inf):
        with pytest.raises(InputError, match="effect must be a number other than 0"):
            pairs_needed(effect, Design())


@each("effect", [1e-9, 1e-12, 1e-160])
def test_an_effect_that_takes_more_than_2_to_53_pairs_is_an_error(effect: float) -> None:
    with pytest.raises(InputError, match=r"the power is out of reach at 9\.0072e\+15; give a larger --difference"):
        pairs_needed(effect, Design())


@each("effect", [1e7, 1e12, 1e160, 1e300])
def test_a_huge_effect_takes_two_pairs(effect: float) -> None:
    assert power_of(effect, 2, 0.05) == 1.0 and pairs_needed(effect, Design()) == 2
