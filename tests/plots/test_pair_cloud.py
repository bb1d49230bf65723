"""Do lines, bands and histograms show the weights and the positions of the data?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.weight_fields import weights_at
from lossscope.plots import pair_cloud, style
from tests.each import each


def _data(number=1000, source="a.pt"):
    x, y = np.random.default_rng(0).uniform(0.1, 0.9, (2, number))
    return pd.DataFrame({"source": source, "s_pos": x, "s_neg": y})


def _hidden(ax):
    """Return the axes of the histogram behind a panel."""
    (hidden,) = (axes for axes in ax.figure.axes if axes is not ax and axes.bbox.bounds == ax.bbox.bounds)
    return hidden


@each("side, weight", [("positive", lambda s: 1 - s), ("negative", lambda s: s)])
def test_weights_that_depend_on_one_similarity_are_a_line(side, weight):
    frame = weights_at("goal:triplet=con,pair=lin,variant=released", _data())
    ax = pair_cloud.draw(frame, side=side)
    (line,) = ax.lines
    assert len(line.get_xdata()) == pair_cloud.PARTS
    np.testing.assert_allclose(line.get_ydata(), weight(line.get_xdata()), atol=1e-9)


def test_the_band_holds_the_middle_of_the_weights():
    frame = weights_at("ntxent:tau=0.1", _data(4000))
    ax = pair_cloud.draw(frame, side="negative")
    band = ax.collections[0].get_paths()[0].vertices
    s, middle = ax.lines[0].get_data()
    near = frame[(frame["s_neg"] - s[10]).abs() < 0.02]["w_neg"]
    low, high = band[np.isclose(band[:, 0], s[10]), 1].min(), band[np.isclose(band[:, 0], s[10]), 1].max()
    assert low == pytest.approx(near.quantile(0.1), abs=0.3)
    assert high == pytest.approx(near.quantile(0.9), abs=0.3)
    assert low < middle[10] < high


def test_histograms_are_shares_of_the_queries(histogram):
    data = _data(500)
    ax = pair_cloud.draw(weights_at("triplet", data), side="positive")
    share, edges = histogram(_hidden(ax))
    np.testing.assert_allclose(share.sum(), 1)
    np.testing.assert_allclose(share, np.histogram(data["s_pos"], edges)[0] / 500)
    np.testing.assert_allclose((edges[0], edges[-1]), (data["s_pos"].min(), data["s_pos"].max()), rtol=1e-12)


def test_several_objectives_are_shares_of_their_largest_which_the_legend_states():
    frame = pd.concat([weights_at(spec, _data()) for spec in ("ntxent:tau=0.1", "ntxent:tau=0.5")])
    left, right = pair_cloud.draw_many(frame).axes[:4:2]
    names = [line.get_label() for line in left.lines]
    tops = frame.groupby("objective", sort=False)["w_neg"].max()
    words = [f"NT-Xent, temperature τ = {tau}" for tau in (0.1, 0.5)]
    assert names == [f"{name} (largest {top:.3g})" for name, top in zip(words, tops, strict=True)]
    assert all(line.get_ydata().max() <= 1 for ax in (left, right) for line in ax.lines)
    assert len({line.get_linestyle() for line in left.lines}) == 2
    single = pair_cloud.draw(frame[frame["objective"] == "ntxent:tau=0.1"])
    assert single.lines[0].get_ydata().max() > 1


def test_a_row_of_panels_for_each_source_on_one_scale():
    frame = weights_at("ntxent", pd.concat([_data(), _data(400, "b.pt")]))
    fig = pair_cloud.draw_many(frame)
    assert [ax.get_title() for ax in fig.axes if ax.get_title()] == [
        "a, 1,000 queries", "b, 400 queries"
    ]  # fmt: skip
    assert len(fig.legends[0].get_texts()) == 1


def test_a_sample_of_one_objective_is_stated_and_the_histogram_is_of_all(histogram):
    """The title once stated the mean of the two numbers, which means nothing."""
    frame = pd.concat([weights_at("triplet", _data(40)), weights_at("ntxent", _data(100))])
    fig = pair_cloud.draw_many(frame)
    assert fig.axes[0].get_title() == "a, 40 to 100 queries"
    share, _ = histogram(_hidden(fig.axes[0]))
    np.testing.assert_allclose(share * 100, np.round(share * 100))
    assert (
        pair_cloud.draw_many(frame[frame["objective"] == "ntxent:tau=0.1"]).axes[0].get_title().endswith("100 queries")
    )


@each("number", [1, 4, 12])
def test_few_queries_have_few_medians(number):
    frame = weights_at("ntxent", _data(number))
    (line,) = pair_cloud.draw(frame).lines
    assert len(line.get_xdata()) == max(1, number // pair_cloud.LEAST)
    np.testing.assert_allclose(np.median(line.get_xdata()), frame["s_neg"].median(), atol=0.2)


def test_a_histogram_behind_other_curves(histogram):
    ax = style.new_figure().add_subplot()
    ax.plot([0, 1], [0, 1])
    ax.margins(x=0)
    pair_cloud.background_histogram([0.2, 0.2, 0.8], ax)
    assert ax.get_xlim() == (0, 1)
    share, _ = histogram(_hidden(ax))
    np.testing.assert_allclose(share.max(), 2 / 3)
    assert len(ax.lines) == 1


def test_alt_states_means_and_zeros():
    data = pd.DataFrame({"source": "a.pt", "s_pos": [0.9, 0.5], "s_neg": [0.1, 0.6]})
    text = pair_cloud.alt(weights_at("triplet:margin=0.2", data))
    assert "Triplet, margin 0.2 on a: mean pull 0.5, mean push 0.5, 50% of 2 queries push nothing" in text
