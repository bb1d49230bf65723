"""Are means, intervals over batches and paired differences those of scipy, and is what is undefined NaN?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lossscope.errors import InputError
from lossscope.training.one_step_utility import COLUMNS as OF_BATCHES
from lossscope.training.utility_summary import COLUMNS, summarise_utility

FIRST = np.array([1.0, 2.0, 4.0, 3.0, 2.5])
SECOND = np.array([0.5, 1.0, 4.5, 1.0, 2.0])


def rows(objective: str = "a", changes: Any = FIRST, **more: Any) -> pd.DataFrame:
    """Return rows of batches of one objective and metric."""
    constant = {
        "source": "tiny", "objective": objective, "direction": "both", "metric": "margin", "unit": "similarity",
        "before": 10.0, "after": 10.0 + np.asarray(changes), "counted": 2.0, "queries_with_weight": 20, "queries": 40,
        "gradient_norm": 3.0, "no_gradient": False, "half_change": np.nan, "step": 1e-4, "batch_size": 8,
        "sampling": "pairs", "split": "train", "held_out": "val", "held_out_items": "2 images, 4 captions",
        "eps": 0.01, "weight_unit": "paper", "seed": 0,
    }  # fmt: skip
    frame = pd.DataFrame({"batch": np.arange(len(changes)), "change": changes}).assign(**constant).assign(**more)
    frame["per_counted"] = frame["change"] / frame["counted"].where(frame["counted"] > 0)
    frame["per_query"] = frame["change"] / frame["queries_with_weight"]
    return frame[list(OF_BATCHES)]


def test_intervals_are_those_of_a_t_test_over_batches() -> None:
    (line,) = summarise_utility(rows()).to_dict("records")
    expected = stats.ttest_1samp(FIRST, 0).confidence_interval(0.95)
    assert (line["change"], line["low"], line["high"]) == pytest.approx((FIRST.mean(), *expected))
    assert line["per_counted_low"] == pytest.approx(expected.low / 2)
    assert line["per_query"] == pytest.approx(FIRST.mean() / 20) and line["n"] == line["n_defined"] == 5
    assert pd.isna(line["baseline"]) and np.isnan(line["difference"]) and line["level"] == 0.95
    narrow = summarise_utility(rows(), 0.5)["low"].item()
    assert narrow == pytest.approx(stats.ttest_1samp(FIRST, 0).confidence_interval(0.5).low)


def test_differences_are_paired_with_the_first_objective() -> None:
    frame = pd.concat([rows("b"), rows("a", SECOND).sample(frac=1, random_state=0).sort_values("batch")])
    summary = summarise_utility(frame)
    assert tuple(summary.columns) == COLUMNS
    first, second = summary.to_dict("records")
    assert (first["objective"], second["objective"], second["baseline"]) == ("b", "a", "b")
    expected = stats.ttest_rel(SECOND, FIRST).confidence_interval(0.95)
    got = second["difference"], second["difference_low"], second["difference_high"]
    assert got == pytest.approx(((SECOND - FIRST).mean(), *expected))
    assert second["per_counted_difference"] == pytest.approx((SECOND - FIRST).mean() / 2)


def test_objectives_stay_in_their_order_with_all_metrics_together() -> None:
    parts = [rows(name, metric=metric) for metric in ("margin", "R@1") for name in ("z", "a")]
    summary = summarise_utility(pd.concat(parts))
    assert summary[["objective", "metric"]].to_numpy().tolist() == [
        ["z", "margin"], ["z", "R@1"], ["a", "margin"], ["a", "R@1"],
    ]  # fmt: skip


def test_batches_without_a_count_or_a_gradient_are_counted() -> None:
    frame = rows("a", [0.0, 1.0, 3.0], counted=[0.0, 1.0, 2.0], no_gradient=[True, False, False])
    (line,) = summarise_utility(frame).to_dict("records")
    assert (line["no_gradient"], line["n"], line["n_defined"]) == (1, 3, 2)
    assert line["change"] == pytest.approx(4 / 3) and line["per_counted"] == pytest.approx((1 + 1.5) / 2)
    none = summarise_utility(rows("a", [0.0, 0.0], counted=0.0)).iloc[0]
    assert none["change"] == 0 and np.isnan(none["per_counted"]) and none["n_defined"] == 0


def test_an_interval_without_a_spread_is_nan() -> None:
    for frame, level in ((rows("a", [1.0]), 0.95), (rows("a", [1.0, 1.0]), 0.95), (rows("a"), None)):
        line = summarise_utility(frame, level).iloc[0]
        assert np.isnan(line["low"]) and np.isnan(line["high"]) and np.isfinite(line["change"])


def test_linearity_compares_whole_steps_with_two_halves() -> None:
    frame = rows("a", [2.0, 4.0, 9.0], half_change=[1.0, 3.0, np.nan])
    assert summarise_utility(frame)["linearity"].item() == pytest.approx(6 / 8)
    assert np.isnan(summarise_utility(rows())["linearity"].item())


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="batches of b must be those of a, batch by batch"):
        summarise_utility(pd.concat([rows("a"), rows("b", [1.0, 2.0])]))
    with pytest.raises(InputError, match="must be one or more; got none"):
        summarise_utility(rows()[:0])
    with pytest.raises(InputError, match="Add change"):
        summarise_utility(rows().drop(columns="change"))
