"""Is the sheet a sample by strata with a few pairs for the fit, of the right size, and the same for equal seeds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.audit.estimate.counted import count_labels
from lossscope.audit.estimate.pair_file import DesignRow
from lossscope.audit.estimate.sheet import deal, draw_for_fit, order_strata
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.label_sheet import pairs_to_label
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import Pool, ScoredPairs
from lossscope.audit.steps.scorer import Scorer
from lossscope.audit.steps.signals import build_signals

OPTIONS = AuditOptions.of(data="scenes:train=120,val=2,test=2,size=16,ambiguity=0.5", batch_size=40, sheet=40)
NONE = np.zeros(0, np.int64)


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    inputs = read_inputs([], OPTIONS)
    return Scorer.of(inputs.material, build_signals((), inputs.material.relations.sides), OPTIONS)


@pytest.fixture(scope="module")
def drawn(scorer: Scorer) -> ScoredPairs:
    return scorer.score_random()


@pytest.fixture(scope="module")
def pool(scorer: Scorer, drawn: ScoredPairs) -> Pool:
    suspects = drawn.take(np.argsort(-drawn.probability)[:500])
    return pairs_to_label(scorer, suspects, drawn, 40, 0)


@given(st.lists(st.integers(0, 30), max_size=9), st.integers(0, 100))
@settings(max_examples=60)
def test_strata_are_dealt_evenly_and_in_full(lengths: list[int], size: int) -> None:
    taken = deal(lengths, size)
    assert sum(taken) == min(size, sum(lengths))
    assert all(0 <= number <= length for number, length in zip(taken, lengths, strict=True))
    open_ones = [number for number, length in zip(taken, lengths, strict=True) if number < length]
    assert not open_ones or max(taken) - min(open_ones) <= 1


def test_each_pair_of_a_stratum_comes_first_equally_often() -> None:
    firsts = [order_strata([np.arange(4)], np.arange(4), NONE, seed)[0][0] for seed in range(400)]
    assert np.bincount(firsts).min() > 70


def test_a_pair_that_batches_hold_twice_comes_first_twice_as_often() -> None:
    keys = np.array([7, 7, 8])
    orders = [order_strata([np.arange(3)], keys, NONE, seed)[0] for seed in range(600)]
    assert all(len(order) == 2 for order in orders)
    assert np.mean([keys[order[0]] == 7 for order in orders]) == pytest.approx(2 / 3, abs=0.06)


def test_pairs_that_were_drawn_before_are_left_out() -> None:
    (order,) = order_strata([np.arange(5)], np.arange(5) + 10, np.array([11, 13]), 0)
    assert sorted(order.tolist()) == [0, 2, 4]


def test_high_values_of_every_signal_are_drawn_for_the_fit() -> None:
    Z = np.random.default_rng(0).normal(size=(100_000, 4))
    rows = draw_for_fit(Z, 16, 0)
    assert len(set(rows.tolist())) == len(rows) == 16
    for column in Z.T:
        assert len(set(rows.tolist()) & set(np.argsort(-column)[:300].tolist())) >= 2
    assert len(draw_for_fit(Z[:0], 5, 0)) == 0


def test_at_most_a_quarter_serves_the_fit_alone_and_the_rest_covers_every_stratum(pool: Pool) -> None:
    of_sheet = pool.design[: pool.size]
    assert pool.size == 40
    assert 0 < sum(row is None for row in of_sheet) <= 10
    assert {row.stratum for row in of_sheet if row} == set(range(1, len(pool.shares) + 1))
    assert all(row is not None for row in pool.design[pool.size :])


def test_the_page_has_more_pairs_than_the_sheet_each_once(scorer: Scorer, drawn: ScoredPairs, pool: Pool) -> None:
    assert 3 * 40 <= len(pool.design) <= 3 * 40 + 10
    pairs = list(zip(pool.scored.pairs.left.tolist(), pool.scored.pairs.right.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    again = pairs_to_label(scorer, drawn.take(np.argsort(-drawn.probability)[:500]), drawn, 40, 0)
    np.testing.assert_array_equal(again.scored.pairs.left, pool.scored.pairs.left)
    other = pairs_to_label(scorer, drawn.take(NONE), drawn, 40, 1)
    assert other.scored.pairs.left.tolist() != pool.scored.pairs.left.tolist()


def test_shares_of_strata_and_copies_are_all_negatives(drawn: ScoredPairs, pool: Pool) -> None:
    assert sum(pool.shares) + (drawn.copy > 0).mean() == pytest.approx(1)
    assert {row.share for row in pool.design if row} == set(pool.shares)


def test_the_mean_over_sheets_is_the_share_of_matches(scorer: Scorer, drawn: ScoredPairs) -> None:
    """Draws of a stratum have its share of matches in the mean."""
    match = np.random.default_rng(0).random((120, 600)) < 0.2
    truth = (match[drawn.pairs.left, drawn.pairs.right] | (drawn.copy > 0)).mean()
    values = []
    for seed in range(15):
        pool = pairs_to_label(scorer, drawn.take(NONE), drawn, 40, seed)
        answers = match[pool.scored.pairs.left, pool.scored.pairs.right]
        value = 1 - sum(pool.shares)
        for number, share in enumerate(pool.shares, 1):
            of_stratum = [row is not None and row.stratum == number for row in pool.design]
            value += share * answers[of_stratum].mean()
        values.append(value)
    assert np.mean(values) == pytest.approx(truth, abs=3 * float(np.std(values)) / 15**0.5)


def test_a_second_sheet_goes_on_with_the_strata_of_the_first(scorer: Scorer, pool: Pool, tmp_path: Path) -> None:
    """Pairs of the design are not drawn again; pairs answered for the fit alone stay in their strata."""
    material, rows = scorer.table.material, []
    for number, row in enumerate(pool.design[: pool.size]):
        ids = material.image_ids[pool.scored.pairs.left[number]], material.caption_ids[pool.scored.pairs.right[number]]
        rows.append(",".join([*ids, "no" if number % 3 else "yes", *(("", "") if row is None else row.cells)]))
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["image,caption,answer,stratum,share", *rows]) + "\n")
    labelled = Scorer.of(material, build_signals((), material.relations.sides), replace(OPTIONS, labels=(path,)))
    drawn = labelled.score_random()
    second = pairs_to_label(labelled, drawn.take(NONE), drawn, 40, 0)
    assert second.shares == pool.shares
    assert labelled.labels is not None
    counted, _ = count_labels(labelled.labels)
    assert counted is not None and counted.answers == sum(row is not None for row in pool.design[: pool.size])

    def pairs(scored: ScoredPairs, design: Sequence[DesignRow | None]) -> set[tuple[int, int]]:
        rows = zip(scored.pairs.left.tolist(), scored.pairs.right.tolist(), design, strict=True)
        return {(a, b) for a, b, row in rows if row is not None}

    assert not pairs(pool.sheet, pool.design[: pool.size]) & pairs(second.scored, second.design)
