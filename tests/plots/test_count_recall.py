"""Are marks at the means over seeds, with bars of the sample deviation, in the right panel?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from lossscope.plots import count_recall

COUNTS = {"triplet": 6.0, "triplet_sh": 1.0}


def _frame(panels=("a", "b"), seeds=3):
    rows = [
        (label, panel, direction, seed, count * (1 + 0.1 * seed) + (direction == "t2i"), 300.0 + 10 * number + seed)
        for number, panel in enumerate(panels)
        for label, count in COUNTS.items()
        for direction in ("i2t", "t2i")
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=list(count_recall.COLUMNS))


def _marks(ax):
    """Return (x, y), and half the lengths of the bars, of every mark."""
    marks = []
    for item in ax.containers:
        assert isinstance(item, ErrorbarContainer)
        x, y = (float(values[0]) for values in item[0].get_data())
        halves = [float(np.ptp(bar.get_segments()[0], axis=0).max() / 2) for bar in item[2]]
        marks.append(((x, y), halves))
    return marks


def test_marks_are_means_and_bars_sample_deviations():
    ax = count_recall.draw(_frame(("a",)))
    marks = _marks(ax)
    assert len(marks) == 4
    (x, y), (across, up) = marks[0]
    assert (x, y) == (pytest.approx(6.6), pytest.approx(301))
    assert (across, up) == (pytest.approx(0.6), pytest.approx(1.0))  # ddof 1 of 6, 6.6, 7.2 and of 300, 301, 302
    assert marks[1][0][0] == pytest.approx(7.6)


def test_one_seed_has_no_bars():
    ax = count_recall.draw(_frame(("a",), seeds=1))
    assert [halves for _, halves in _marks(ax)] == [[]] * 4


def test_equal_seeds_have_no_bars_and_few_seeds_are_no_interval():
    """Three equal seeds once looked like certainty."""
    frame = _frame(("a",))
    ax = count_recall.draw(frame.assign(rsum=300.0))
    (across, *up) = _marks(ax)[0][1]
    assert across == pytest.approx(0.6) and not up
    assert "not a confidence interval" in ax.figure.legends[0].get_title().get_text().replace("\n", " ")
    many = count_recall.draw(_frame(("a",), seeds=5)).figure.legends[0].get_title().get_text()
    assert "confidence" not in many


def test_a_panel_each_on_one_scale_of_counts():
    fig = count_recall.draw_many(_frame())
    assert [ax.get_title() for ax in fig.axes] == ["a", "b"]
    assert fig.axes[0].get_xlim() == fig.axes[1].get_xlim()
    assert {ax.get_xscale() for ax in fig.axes} == {"symlog"}
    assert [mark[0][1] for mark in _marks(fig.axes[1])] == pytest.approx([311] * 4)
    assert "3 seeds" in fig.legends[0].get_title().get_text()
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        "Triplet",
        "Triplet SH",
        "image to text",
        "text to image",
    ]


def test_different_numbers_of_seeds_are_stated():
    frame = _frame()
    fig = count_recall.draw_many(frame.drop(frame.index[(frame["panel"] == "b") & (frame["seed"] == 2)]))
    assert fig.legends[0].get_title().get_text().startswith("Means over 2 to 3 seeds")


def test_unknown_numbers_are_left_out_and_alt_states_the_number_of_seeds():
    frame = _frame(("a",))
    frame.loc[0, "count"] = np.nan
    assert "a: Triplet i2t 6.9 with rsum 301.5 (n = 2), Triplet t2i 7.6 with rsum 301.0 (n = 3)" in count_recall.alt(
        frame
    )
