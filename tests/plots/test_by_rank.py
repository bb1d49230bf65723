"""Do the panels show the mean weights of the frame, each divided by its largest, and the line of the exponent?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import by_rank
from tests.plots.frames import FRAMES

MIDDLES = [1, 2, *(np.sqrt((last / 2 + 1) * last) for last in (4, 8, 16, 32, 64, 128))]


def frame() -> pd.DataFrame:
    return FRAMES[by_rank]()[0]


def of(statistic: str) -> pd.DataFrame:
    rows = frame()
    return rows[(rows["statistic"] == statistic) & (rows["objective"] == "triplet_sh") & (rows["direction"] == "i2t")]


def line_of(ax, name="Triplet SH i2t"):
    (line,) = (line for line in ax.lines if line.get_label() == name)
    return line


def test_panels_are_the_data():
    axes = by_rank.draw_many(frame().sample(frac=1, random_state=0)).axes
    assert [ax.get_xlabel() for ax in axes] == list(by_rank.PANELS.values())
    for ax, statistic in zip(axes, by_rank.PANELS, strict=True):
        line, rows = line_of(ax), of(statistic)
        np.testing.assert_allclose(line.get_ydata(), rows["mean"] / rows["mean"].max())
        np.testing.assert_allclose(line.get_xdata(), rows["x"] if "difference" in statistic else MIDDLES)
    assert [ax.get_xscale() for ax in axes] == ["log", "log", "linear"]
    assert line_of(axes[0], "Triplet SH t2i").get_linestyle() == "--"


def test_weights_that_follow_the_exponent_lie_on_its_line():
    rows = frame()
    weights = rows["statistic"] == "query_weight"
    rows.loc[weights, "mean"] = 3 * np.tile(MIDDLES, 4) ** -1.5
    ax = by_rank.draw(rows, panel="query_weight")
    fits = [line for line in ax.lines if str(line.get_label()).startswith("_")]
    assert len(fits) == 4
    for fit in fits:
        np.testing.assert_allclose(fit.get_xdata(), [2, MIDDLES[-1]])
        np.testing.assert_allclose(fit.get_ydata(), np.array([2, MIDDLES[-1]]) ** -1.5)


@pytest.mark.parametrize("change", [{"exponent": np.nan}, {"query_share": np.nan}])
def test_without_an_exponent_or_the_shares_of_queries_no_line_is_drawn(change):
    rows = frame()
    rows.loc[rows["statistic"].isin(change), "mean"] = np.nan
    figure = by_rank.draw_many(rows)
    assert len(figure.axes[1].lines) == 4
    assert "R to the power of the exponent" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_panel_of_differences_ends_where_no_weight_is_left():
    low, high = by_rank.draw(frame()).get_xlim()
    assert -0.9 < low < -0.5 and 0.5 < high < 0.9


def test_a_loss_without_weight_has_no_line():
    rows = frame()
    rows.loc[rows["objective"] == "triplet_sh", "mean"] = 0.0
    assert {
        str(line.get_label()).partition(",")[0] for line in by_rank.draw(rows).lines if "i2t" in str(line.get_label())
    } == {"NT-Xent"}


def test_batches_too_small_for_a_mean_by_difference_leave_that_panel_empty():
    figure = by_rank.draw_many(frame()[lambda rows: rows["statistic"] != "difference_weight"])
    assert [len(ax.lines) > 1 for ax in figure.axes] == [True, True, False]


def test_alt_states_the_numbers():
    rows = frame()[lambda rows: (rows["objective"] == "triplet_sh") & (rows["direction"] == "i2t")]
    assert by_rank.alt(rows) == (
        "Mean weight by rank of the negative, by rank of the positive, and by difference. Triplet SH i2t: negatives "
        "weigh most at rank 1, the weight of a query follows R to the power -1.50, the weight is largest at D = 0."
    )
