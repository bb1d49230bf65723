"""Do the tables of utility state both directions' means, their intervals, and what limits them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import utility

NAN = float("nan")


def rows(**more: Any) -> pd.DataFrame:
    """Return a summary of two losses, two metrics and two directions."""
    lines = []
    for objective, baseline, change in (
        ("ntxent:tau=0.1", None, 0.0025),
        ("triplet:margin=0.2", "ntxent:tau=0.1", 0.002),
    ):
        for direction, factor in (("i2t", 3.0), ("both", 1.0)):
            for metric, unit in (("margin", "similarity"), ("R@1", "%")):
                scale = factor * (1 if metric == "margin" else 200)
                ends = (NAN,) * 3 if baseline is None else (-0.0005 * scale, -0.0008 * scale, -0.0002 * scale)
                lines.append({
                    "source": "tiny", "objective": objective, "baseline": baseline, "direction": direction,
                    "metric": metric, "unit": unit, "before": 0.1, "change": change * scale,
                    "low": (change - 0.0002) * scale, "high": (change + 0.0002) * scale, "difference": ends[0],
                    "difference_low": ends[1], "difference_high": ends[2], "per_counted": change * scale / 2,
                    "per_counted_low": change * scale / 2 - 0.0001, "per_counted_high": change * scale / 2 + 0.0001,
                    "per_query": change * scale / 200, "counted": 2.0, "queries_with_weight": 200.0, "queries": 256.0,
                    "no_gradient": 0, "n": 20, "n_defined": 20, "linearity": 0.95,
                })  # fmt: skip
    constant = {
        "level": 0.95, "step": 1e-4, "batch_size": 128, "sampling": "pairs", "split": "train", "held_out": "val",
        "held_out_items": "100 images, 500 captions", "eps": 0.01, "weight_unit": "relative", "seed": 0,
    }  # fmt: skip
    return pd.DataFrame(lines).assign(**constant).assign(**more)


def test_a_line_is_a_metric_of_a_loss_in_the_mean_of_both_directions() -> None:
    changes, counted = utility.build(rows())
    frame = changes.to_frame()
    assert frame["metric"].tolist() == ["margin", "margin", "R@1", "R@1"]
    np.testing.assert_allclose(frame["change mean"], [0.0025, 0.002, 0.5, 0.4])
    np.testing.assert_allclose(frame["difference mean"], [NAN, -0.0005, NAN, -0.1])
    np.testing.assert_allclose(counted.to_frame()["per C_neg mean"], [0.00125, 0.001, 0.25, 0.2])
    text = " ".join(changes.to_text(120).split())
    assert "0.00250 0.00230 to 0.00270" in text and "−0.00050 −0.00080 to −0.00020" in text
    assert "200 of 256" in counted.to_text(120) and "0 of 20" in counted.to_text(120)


def test_the_first_line_says_that_the_split_is_held_out_and_how_many_batches_there_are() -> None:
    text = " ".join(utility.build(rows())[0].to_text().split())
    assert text.startswith("Utility of one step: change of split val (100 images, 500 captions), on which no step is")
    assert "relative length 0.0001 on each of n = 20 batches of split train" in text and "batch size 128" in text
    assert "95 % t intervals over batches, not over items or seeds" in text and "eval mode" in text


def test_a_step_that_is_too_long_is_named() -> None:
    (note,) = utility.build(rows())[0].notes
    assert "changes the margin by 0.95 of twice the change of half a step" in note and "--step" not in note
    (note,) = utility.build(rows(linearity=[0.95] * 4 + [0.6] * 4))[0].notes
    assert "0.60 to 0.95" in note and "use a smaller --step than 0.0001" in note
    assert not utility.build(rows(linearity=NAN))[0].notes


def test_batches_without_a_count_are_named() -> None:
    (note,) = utility.build(rows(n_defined=[20] * 4 + [17] * 4, no_gradient=3))[1].notes
    assert "which is 0 / 0: triplet:margin=0.2: 3 of 20." in note
    assert not utility.build(rows())[1].notes


def test_without_intervals_and_other_losses_their_columns_are_gone() -> None:
    alone = rows(level=NAN, low=NAN, high=NAN, per_counted_low=NAN, per_counted_high=NAN).iloc[:4]
    changes, counted = utility.build(alone)
    assert changes.headings == ("metric", "objective", "before", "change mean")
    assert not [heading for heading in counted.headings if "interval" in heading]
    assert "intervals" not in changes.to_text()


def test_sources_are_named_where_they_differ() -> None:
    two = pd.concat([rows(), rows(source="other")])
    assert (
        utility.build(two)[0].to_frame()["source"].tolist()
        == ["tiny"] * 2 + ["other"] * 2 + ["tiny"] * 2 + ["other"] * 2
    )


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="Add linearity"):
        utility.build(rows().drop(columns="linearity"))
    with pytest.raises(InputError, match="must have rows of the direction both; got none"):
        utility.build(rows()[lambda frame: frame["direction"] == "i2t"])
