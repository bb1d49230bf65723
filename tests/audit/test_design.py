"""Is the counted rate unbiased, its interval that of the posterior, and the next question in the emptiest stratum?"""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.special import expit, log_expit

from lossscope.audit.estimate.design import (
    DRAWS,
    FALLS,
    LOWEST,
    LOWEST_AT_TOP,
    NUMBER,
    STEP,
    Stratum,
    counted_rate,
    draw_rates,
    next_stratum,
    split_by_score,
)

GRID = LOWEST + STEP * np.arange(NUMBER)


def test_strata_hold_every_pair_once_and_higher_scores_come_first() -> None:
    score = np.random.default_rng(0).normal(size=100_000)
    strata = split_by_score(score)
    assert np.array_equal(np.sort(np.concatenate(strata)), np.arange(100_000))
    assert [len(stratum) for stratum in strata] == [10, 19, 71, 200, 700, 2000, 7000, 20_000, 70_000]
    for high, low in pairwise(strata):
        assert score[high].min() >= score[low].max()


@pytest.mark.parametrize("n", [1, 9, 15, 40, 600])
def test_strata_of_few_pairs_are_part_of_the_next(n: int) -> None:
    strata = split_by_score(np.zeros(n))
    assert sum(map(len, strata)) == n
    assert len(strata) == 1 or min(map(len, strata)) >= 10


def test_strata_depend_on_the_order_of_scores_alone() -> None:
    score = np.random.default_rng(0).normal(size=5000)
    for rows, expected in zip(split_by_score(score), split_by_score(np.exp(3 * score)), strict=True):
        np.testing.assert_array_equal(rows, expected)


def test_the_counted_rate_is_unbiased_over_all_samples_that_can_be_drawn() -> None:
    population = [[True, False, True], [False, False, True, False]]
    pairs, copies = 8, 1
    samples = product(*(combinations(part, 2) for part in population))
    values = []
    for sample in samples:
        strata = [Stratum(len(part) / pairs, 2, sum(drawn)) for part, drawn in zip(population, sample, strict=True)]
        counted = counted_rate(strata)
        assert counted is not None
        values.append(counted.rate.value)
    assert np.mean(values) == pytest.approx((3 + copies) / pairs)
    assert len(set(values)) > 2


def test_a_stratum_without_an_answer_has_no_rate() -> None:
    assert counted_rate([Stratum(0.1, 3, 1), Stratum(0.9)]) is None
    assert counted_rate([]) is None


def brute_force(strata: list[Stratum]) -> tuple[float, float]:
    """Return the middle 95 % of the posterior of two strata, by all pairs of log-odds on the grid and in its cells."""
    top, rest = strata

    def likelihood(stratum: Stratum, odds: float) -> float:
        no = stratum.answers - stratum.yes
        return float(np.exp(stratum.yes * log_expit(odds) + no * log_expit(-odds)))

    inside = STEP * np.array([-0.4, -0.2, 0, 0.2, 0.4])
    values: list[float] = []
    weights: list[float] = []
    for mean in FALLS:
        keep = np.exp(-STEP / mean)
        for a in range(LOWEST_AT_TOP, NUMBER):
            for b in range(a + 1):
                fall = keep ** (a - b) * (1 if b == 0 else 1 - keep)
                weight = fall * likelihood(top, GRID[a]) * likelihood(rest, GRID[b])
                weights += [weight] * len(inside) ** 2
                values += (top.share * expit(GRID[a] + inside)[:, None] + rest.share * expit(GRID[b] + inside)).flat
    order = np.argsort(values)
    sums = np.cumsum(np.array(weights)[order])
    low, high = np.interp([0.025, 0.975], sums / sums[-1], np.array(values)[order])
    return float(low), float(high)


@pytest.mark.parametrize(
    "strata",
    [
        [Stratum(0.1, 20, 8), Stratum(0.9, 20, 2)],
        [Stratum(0.1, 30, 25), Stratum(0.9, 40, 10)],
        [Stratum(0.3, 10, 1), Stratum(0.7, 30, 1)],
    ],
)
def test_the_interval_is_that_of_every_rate_weighed_by_its_posterior(strata: list[Stratum]) -> None:
    low, high = brute_force(strata)
    counted = counted_rate(strata)
    assert counted is not None
    assert counted.rate.low == pytest.approx(low, rel=0.08)
    assert counted.rate.high == pytest.approx(high, rel=0.08)


def test_draws_do_not_rise_where_scores_fall_but_within_a_step_of_the_grid() -> None:
    rates = draw_rates([Stratum(0.01, 5, 4), Stratum(0.19, 5, 0), Stratum(0.8, 5, 3)])
    assert rates.shape == (DRAWS, 3)
    odds = np.log(rates / (1 - rates))
    assert (np.diff(odds, axis=1) <= STEP + 1e-9).all()


def test_the_interval_narrows_with_answers_and_holds_the_estimate() -> None:
    spans = []
    for times in (1, 4, 16):
        counted = counted_rate([Stratum(0.01, 5 * times, 3 * times), Stratum(0.99, 10 * times, times)])
        assert counted is not None and counted.is_in_order
        low, high = counted.rate.low, counted.rate.high
        assert low is not None and high is not None and low <= counted.rate.value <= high
        spans.append(high / low)
    assert spans[0] > spans[1] > spans[2]


def test_copies_match_for_certain() -> None:
    counted = counted_rate([Stratum(0.5, 50, 0), Stratum(0.4, 50, 0)])
    assert counted is not None and counted.rate.low is not None
    assert counted.rate.value == pytest.approx(0.1)
    assert counted.rate.low == pytest.approx(0.1)


def test_no_yes_is_no_rate_of_0_for_certain() -> None:
    counted = counted_rate([Stratum(0.1, 30, 0), Stratum(0.9, 30, 0)])
    assert counted is not None and counted.rate.high is not None
    assert (counted.rate.value, counted.rate.low) == (0, 0)
    assert 0.001 < counted.rate.high < 0.2


def test_answers_against_the_order_of_scores_are_finite_wide_and_said() -> None:
    """Thousands of such answers made all weights 0, and the interval NaN."""
    counted = counted_rate([Stratum(0.3, 3000, 0), Stratum(0.7, 3000, 3000)])
    assert counted is not None and counted.rate.high is not None
    assert not counted.is_in_order
    assert counted.rate.high == counted.rate.value == pytest.approx(0.7)


def test_the_next_question_is_of_the_stratum_with_the_fewest_answers_whatever_they_are() -> None:
    """When answers decided, a stratum was left as soon as a match turned up, and the rate was too high."""
    for yes in (0, 1):
        asked, strata = [], [Stratum(0.01), Stratum(0.09), Stratum(0.9)]
        for _ in range(6):
            number = next_stratum(strata, [True] * 3)
            assert number is not None
            asked.append(number)
            strata[number] = Stratum(
                strata[number].share, strata[number].answers + 1, yes * (strata[number].answers + 1)
            )
        assert asked == [0, 1, 2, 0, 1, 2]
        assert next_stratum(strata, [False, True, True]) == 1
        assert next_stratum(strata, [False] * 3) is None
