"""Is tau over all pairs of runs, and does a verdict appear only where the runs decide it?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.stats.rank_association import COLUMNS, FEWER, MORE, OPEN, TOO_FEW, association, taus
from tests.each import each

Runs = tuple[list[float], list[float], list[int]]


@st.composite
def runs(draw: st.DrawFn) -> Runs:
    """Draw counts, rsums (few values, which makes ties) and losses of 2 to 9 runs."""
    n = draw(st.integers(2, 9))
    values = st.lists(st.integers(-3, 3).map(float), min_size=n, max_size=n)
    return draw(values), draw(values), draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))


def slow(count: Sequence[float], rsum: Sequence[float], groups: Sequence[int]) -> float:
    """Compute tau by a loop over pairs of runs of different losses."""
    agree = disagree = pairs = 0
    for i, j in itertools.combinations(range(len(groups)), 2):
        if groups[i] == groups[j]:
            continue
        pairs += 1
        agree += (count[i] > count[j] and rsum[i] > rsum[j]) or (count[i] < count[j] and rsum[i] < rsum[j])
        disagree += (count[i] > count[j] and rsum[i] < rsum[j]) or (count[i] < count[j] and rsum[i] > rsum[j])
    return (agree - disagree) / pairs if pairs else math.nan


def fast(count: Sequence[float], rsum: Sequence[float], groups: Sequence[int]) -> float:
    values: npt.NDArray[np.float64] = taus(np.array([count]), np.array([rsum]), np.array(groups))
    assert values.shape == (1,)
    return float(values[0])


@given(runs())
def test_tau_is_that_of_a_loop_over_pairs(drawn: Runs) -> None:
    count, rsum, groups = drawn
    assert fast(count, rsum, groups) == pytest.approx(slow(count, rsum, groups), nan_ok=True)


@given(runs())
def test_negated_rsums_negate_tau(drawn: Runs) -> None:
    count, rsum, groups = drawn
    tau = fast(count, rsum, groups)
    assert fast(count, [-value for value in rsum], groups) == pytest.approx(-tau, nan_ok=True)
    assert math.isnan(tau) or -1 <= tau <= 1


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(drawn: Runs, rng: object) -> None:
    order = list(range(len(drawn[0])))
    rng.shuffle(order)  # type: ignore[attr-defined]
    shuffled = ([column[index] for index in order] for column in drawn)
    assert fast(*shuffled) == pytest.approx(fast(*drawn), nan_ok=True)  # type: ignore[arg-type]


def test_rows_are_independent_of_each_other() -> None:
    count, rsum = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), np.array([[1.0, 2.0, 3.0]] * 2)
    np.testing.assert_array_equal(taus(count, rsum, np.array([0, 1, 2])), [1.0, -1.0])
    assert np.isnan(taus(count, rsum, np.zeros(3, int))).all()


def frame(
    counts: dict[str, Sequence[float]], rsums: dict[str, Sequence[float]], panel: str = "A", direction: str = "i2t"
) -> pd.DataFrame:
    rows = [
        {"label": label, "panel": panel, "direction": direction, "seed": seed, "count": count, "rsum": rsum}
        for label in counts
        for seed, (count, rsum) in enumerate(zip(counts[label], rsums[label], strict=True))
    ]
    return pd.DataFrame(rows)


FEW = {"few": [1.0, 1.1, 1.2, 1.3, 1.4], "many": [9.0, 9.1, 9.2, 9.3, 9.4]}
GOOD, BAD = [200.0, 201.0, 202.0, 203.0, 204.0], [100.0, 101.0, 102.0, 103.0, 104.0]


@each("rsums, tau, verdict", [({"few": GOOD, "many": BAD}, -1.0, FEWER), ({"few": BAD, "many": GOOD}, 1.0, MORE)])
def test_an_order_that_holds_for_every_pair_is_decided(rsums: dict[str, list[float]], tau: float, verdict: str) -> None:
    (row,) = association(frame(FEW, rsums)).to_dict("records")
    assert {name: row[name] for name in COLUMNS} == {
        "panel": "A", "direction": "i2t", "losses": 2, "n": 10, "tau": tau, "low": tau, "high": tau, "verdict": verdict,
    }  # fmt: skip


def test_seeds_that_disagree_decide_nothing() -> None:
    mixed = {"few": [100.0, 200.0, 150.0, 120.0, 180.0], "many": [200.0, 100.0, 151.0, 181.0, 121.0]}
    (row,) = association(frame(FEW, mixed)).to_dict("records")
    assert row["verdict"] == OPEN and row["low"] <= row["tau"] <= row["high"] and row["low"] < 0 < row["high"]


def test_the_same_runs_give_the_same_interval() -> None:
    rows = frame(FEW, {"few": [100.0, 200.0, 150.0, 120.0, 180.0], "many": [200.0, 100.0, 151.0, 181.0, 121.0]})
    pd.testing.assert_frame_equal(association(rows), association(rows))
    assert association(rows, seed=1)["tau"].equals(association(rows)["tau"])


@each("runs", [1, 2, 3, 4])
def test_with_few_runs_of_a_loss_there_is_no_interval(runs: int) -> None:
    few = frame({**FEW, "few": FEW["few"][:runs]}, {"few": GOOD[:runs], "many": BAD})
    (row,) = association(few).to_dict("records")
    assert row["tau"] == -1.0 and math.isnan(row["low"]) and math.isnan(row["high"]) and row["verdict"] == TOO_FEW


def test_one_loss_has_no_tau() -> None:
    (row,) = association(frame({"few": [1.0, 2.0]}, {"few": [100.0, 101.0]})).to_dict("records")
    assert row["losses"] == 1 and math.isnan(row["tau"]) and row["verdict"] == TOO_FEW


@each("column", ["count", "rsum"])
def test_runs_without_a_number_are_no_pairs(column: str) -> None:
    whole = frame(FEW, {"few": GOOD, "many": BAD})
    broken = pd.concat([whole, whole.assign(**{column: math.nan, "label": "broken"})], ignore_index=True)
    pd.testing.assert_frame_equal(association(broken), association(whole))


def test_a_panel_without_complete_runs_has_no_row() -> None:
    assert association(frame(FEW, {"few": [math.nan] * 5, "many": [math.nan] * 5})).empty
    assert tuple(association(frame(FEW, {"few": GOOD, "many": BAD})[:0]).columns) == COLUMNS


def test_panels_and_directions_are_apart() -> None:
    a, b = frame(FEW, {"few": GOOD, "many": BAD}), frame(FEW, {"few": BAD, "many": GOOD}, "B", "t2i")
    rows = association(pd.concat([a, b], ignore_index=True))
    assert list(zip(rows["panel"], rows["direction"], rows["tau"], strict=True)) == [
        ("A", "i2t", -1.0),
        ("B", "t2i", 1.0),
    ]


def test_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match=r"must have the columns label, .*.*Add seed, rsum"):
        association(frame(FEW, {"few": GOOD, "many": BAD}).drop(columns=["seed", "rsum"]))
