"""Are the marks the mean changes, their lines the intervals, and the counted negatives on the right?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import style, utility


def frame(sources=("a.pt",), counts=(10.0, 0.5)):
    rows = [
        {"source": source, "objective": objective, "direction": direction, "metric": metric, "unit": "1",
         "change": change, "low": change - 1, "high": change + 2, "counted": counted, "counted_low": 0.9 * counted,
         "counted_high": 1.2 * counted, "level": 0.95, "n": 20, "step": 1e-4, "held_out": "val"}
        for source in sources
        for objective, change, counted in (("ntxent:tau=0.1", 3.0, counts[0]), ("triplet:margin=0.2", -2.0, counts[1]))
        for metric in ("margin", "R@1") for direction in ("i2t", "both")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def margins(rows):
    return rows[rows["metric"] == "margin"]


def marks(ax):
    return [line for line in ax.lines if line.get_marker() not in ("None", None, "")]


def test_marks_are_the_changes_of_both_directions_and_lines_their_intervals():
    ax = utility.draw(margins(frame()))
    assert [line.get_ydata()[0] for line in marks(ax)] == [3.0, -2.0]
    ends = [segments.get_segments()[0][:, 1].tolist() for segments in ax.collections]
    assert ends == [[2.0, 5.0], [-3.0, 0.0]]
    colours = style.colours(["ntxent:tau=0.1", "triplet:margin=0.2"])
    assert [line.get_color() for line in marks(ax)] == list(colours.values())
    assert ax.get_ylabel() == "change of margin"


def test_each_metric_is_a_row_with_the_counted_negatives_on_the_right():
    fig = utility.draw_many(frame())
    assert [ax.get_ylabel() for ax in fig.axes[::2]] == ["change of margin", "change of R@1 (%)"]
    for left, right in zip(fig.axes[::2], fig.axes[1::2], strict=True):
        assert left.get_ylim() == right.get_ylim()
        assert [line.get_xdata()[0] for line in marks(right)] == [10.0, 0.5]
        assert [line.get_ydata()[0] for line in marks(right)] == [3.0, -2.0]
        widths = [segments.get_segments()[0][:, 0] for segments in right.collections]
        np.testing.assert_allclose(widths[1], [9.0, 12.0])
    assert fig.axes[-1].get_xscale() == "log"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        "NT-Xent, temperature τ = 0.1", "Triplet, margin 0.2",
    ]  # fmt: skip
    title = " ".join(fig.legends[0].get_title().get_text().split())
    assert title == "Step of relative length 0.0001, split val, n = 20 batches, 95 % intervals over batches"


def test_a_loss_that_counts_nothing_stands_on_an_axis_from_0():
    fig = utility.draw_many(frame(counts=(10.0, 0.0)))
    assert fig.axes[-1].get_xscale() == "linear" and fig.axes[-1].get_xlim()[0] == 0
    assert [line.get_xdata()[0] for line in marks(fig.axes[-1])] == [10.0, 0.0]


def test_sources_have_marks_of_their_own():
    fig = utility.draw_many(frame(("runs/a/best.pt", "runs/b/best.pt")))
    assert [line.get_marker() for line in marks(fig.axes[0])] == ["o", "o", "s", "s"]
    assert [text.get_text() for text in fig.legends[0].get_texts()][2:] == ["a", "b"]


def test_the_description_has_each_number_and_no_nan():
    rows = margins(frame())
    rows.loc[rows["objective"] == "triplet:margin=0.2", ["low", "high", "level"]] = np.nan
    text = utility.alt(rows)
    assert "margin, ntxent:tau=0.1: 3 (2 to 5) with 10 counted negatives per query" in text
    assert "margin, triplet:margin=0.2: -2 with 0.5 counted negatives per query" in text and "nan" not in text
