"""Do curves go through the means at each temperature, with bands of the deviation?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import what_if
from tests.each import each

TAU = np.array([0.02, 0.05, 0.1, 0.2])


def _frame(statistics=("C_neg", "W_neg"), directions=("i2t", "t2i")):
    parts = [
        pd.DataFrame({"value": TAU, "mean": 100 * TAU + number + turn, "std": 0.5}).assign(
            statistic=name, direction=side
        )
        for number, name in enumerate(statistics)
        for turn, side in enumerate(directions)
    ]
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0).sort_values("statistic", kind="stable")


def test_lines_and_bands_are_the_data():
    ax = what_if.draw(_frame(("C_neg",), ("i2t",)))
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xdata(), TAU)
    np.testing.assert_allclose(line.get_ydata(), 100 * TAU)
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (pytest.approx(1.5), pytest.approx(20.5))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()[0]) == (
        "temperature τ",
        "negatives above ε per query,\n$C_\\mathrm{neg}$",
        0,
    )


def test_a_wide_range_is_logarithmic_and_a_narrow_one_not():
    frame = _frame(("C_neg",))
    assert what_if.draw(frame).get_xscale() == "log"
    assert what_if.draw(frame[frame["value"] >= 0.05]).get_xscale() == "linear"


def test_a_panel_per_statistic_each_on_its_own_scale():
    fig = what_if.draw_many(_frame(), "tau", at=0.1)
    assert [ax.get_ylabel() for ax in fig.axes] == [r"$C_\mathrm{neg}$", r"$W_\mathrm{neg}$"]
    assert [ax.get_title() for ax in fig.axes] == ["negatives above ε per\nquery", "weight on negatives\nabove ε"]
    for ax in fig.axes:
        assert len(ax.lines) == 3
        assert list(ax.lines[-1].get_xdata()) == [0.1, 0.1]
        assert [text.get_text() for text in ax.texts] == ["trained with 0.1"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["image to text", "text to image"]


def _band_text(fig):
    return fig.legends[0].get_title().get_text().replace("\n", " ")


@each("column, n", [("n", 1), ("n_spread", 1)])
def test_one_batch_has_no_band(column, n):
    fig = what_if.draw_many(_frame().assign(**{column: n}))
    assert not any(ax.collections for ax in fig.axes)
    assert _band_text(fig) == "No bands: one batch, or its deviation is not known"


def test_an_unknown_deviation_is_no_band_of_width_zero():
    assert not what_if.draw(_frame(("C_neg",)).assign(std=np.nan)).collections


def test_what_the_band_is_stands_in_the_legend():
    frame = _frame()
    assert _band_text(what_if.draw_many(frame)) == "Bands are one standard deviation over batches"
    short = what_if.draw_many(frame.assign(n=10, n_spread=9))
    assert _band_text(short).endswith("over batches, a short last one left out")


def test_unknown_means_are_left_out():
    frame = _frame(("C_neg",), ("i2t",))
    frame.loc[frame["value"] == 0.05, "mean"] = np.nan
    (line,) = what_if.draw(frame).lines
    np.testing.assert_allclose(line.get_xdata(), [0.02, 0.1, 0.2])


def test_alt_states_both_ends():
    assert "C_neg i2t: 2 at 0.02, 20 at 0.2" in what_if.alt(_frame())
