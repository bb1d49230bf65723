"""Do histograms hold every query once, and is the share of exact zeros stated?"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from lossscope.plots import style, tangent
from tests.each import each


def _frame(values, label="ntxent"):
    return pd.DataFrame({"label": label, "value": values})


def test_bins_are_shares_of_all_queries_and_zeros_are_in_none(histogram):
    values = np.concatenate([np.zeros(25), np.linspace(1, 2, 75)])
    ax = tangent.draw(_frame(values))
    share, edges = histogram(ax)
    assert share.sum() == pytest.approx(0.75)
    np.testing.assert_allclose(share, np.histogram(values[25:], edges)[0] / 100)
    assert ax.get_title() == "NT-Xent\nexactly 0: 25 % of 100"
    assert ax.get_xscale() == "linear" and edges[0] == 0
    assert ax.lines[0].get_xdata()[0] == pytest.approx(1.5)


def test_norms_far_apart_are_on_a_logarithmic_axis(histogram):
    values = np.geomspace(1e-3, 10, 200)
    ax = tangent.draw(_frame(values))
    share, edges = histogram(ax)
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(np.diff(np.log(edges)), np.diff(np.log(edges))[0])
    assert share.sum() == pytest.approx(1)


def test_tiny_norms_are_in_the_first_bin(histogram):
    """Softmax weights of 1e-30 would make an axis of thirty decades."""
    values = np.concatenate([np.full(10, 1e-30), np.full(90, 1.0)])
    share, edges = histogram(tangent.draw(_frame(values)))
    assert share.sum() == pytest.approx(1)
    assert share[0] == pytest.approx(0.1)
    assert edges[0] > 1e-7


def test_one_far_value_does_not_press_the_others_together(histogram):
    share, _ = histogram(tangent.draw(_frame(np.concatenate([np.linspace(1, 3, 999), [300]]))))
    assert share.max() < 0.3


@each("values", [[0.0, 0.0], [0.5], [0.7] * 9])
def test_few_or_equal_norms(values, histogram):
    share, _ = histogram(tangent.draw(_frame(values)))
    assert share.sum() == pytest.approx(np.mean(np.array(values) > 0))


@each("zeros, percent", [(0, "0 %"), (1, "under 0.1 %"), (9999, "over 99.9 %"), (10000, "100 %")])
def test_none_and_all_are_stated_only_if_exact(zeros, percent):
    values = np.ones(10000)
    values[:zeros] = 0
    assert f"NT-Xent: {percent} exactly 0" in tangent.alt(_frame(values))


def test_the_line_is_labelled_with_the_median():
    ax = tangent.draw(_frame(np.linspace(1, 2, 75)))
    assert [text.get_text() for text in ax.texts] == ["median 1.5"]
    assert ax.texts[0].xy[0] == ax.lines[0].get_xdata()[0]


def test_a_bin_of_all_smaller_norms_is_labelled():
    values = np.concatenate([np.full(10, 1e-30), np.full(90, 1.0)])
    assert "smaller ones too" in [text.get_text() for text in tangent.draw(_frame(values)).texts]


def test_axes_of_one_picture_are_of_one_kind():
    """Linear and logarithmic panels once stood side by side."""
    near, far = _frame(np.linspace(1, 2, 50), "a"), _frame(np.geomspace(1e-3, 10, 50), "b")
    assert [ax.get_xscale() for ax in tangent.draw_many(pd.concat([near, far])).axes] == ["log", "log"]
    assert [ax.get_xscale() for ax in tangent.draw_many(pd.concat([near, near.assign(label="c")])).axes] == [
        "linear"
    ] * 2


def test_a_panel_each_on_its_own_axis():
    frame = pd.concat([_frame(np.linspace(1, 2, 50), "a"), _frame(np.linspace(100, 200, 50), "b")])
    left, right = tangent.draw_many(frame).axes
    assert left.get_xlim()[1] < 3 < right.get_xlim()[1]


def test_panels_have_the_colours_of_all_their_labels_together():
    """Each panel chose its colour alone: two losses shared a colour, and other pictures used another."""
    names = ["NT-Xent", "ntxent:tau=0.05", "InfoNCE", "goal:triplet=cir", "Circle", "unified:gamma=20", "triplet"]
    frame = pd.concat([pd.DataFrame({"label": name, "value": np.linspace(1, 2, 50)}) for name in names])
    fig = tangent.draw_many(frame)
    drawn = [to_hex(ax.collections[0].get_facecolor()[0]) for ax in fig.axes]
    assert drawn == [colour.lower() for colour in style.colours(names).values()] and len(set(drawn)) == len(names)


@pytest.mark.usefixtures("fitted")
def test_no_text_touches_another_with_many_losses():
    """Titles ran into those of the next panel, and numbers of a wide axis into one another."""
    rng = np.random.default_rng(0)
    names = ["goal:triplet=cir,pair=sig-ms", "unified:margin=0.2,gamma=20", *(f"loss number {k}" for k in range(7))]
    values = {name: np.exp(rng.normal(0, 3, 30_000)) * (rng.random(30_000) > 1e-4) for name in names}
    frame = pd.concat([pd.DataFrame({"label": name, "value": sample}) for name, sample in values.items()])
    with style.screen():
        fig = tangent.draw_many(frame)
        fig.draw_without_rendering()
        titles = [ax.title.get_window_extent() for ax in fig.axes]
        ticks = [[text.get_window_extent() for text in ax.get_xticklabels()] for ax in fig.axes]
    assert not [1 for title, other in itertools.combinations(titles, 2) if title.overlaps(other)]
    assert all(len(texts) >= 2 for texts in ticks)
    assert not [1 for texts in ticks for left, right in itertools.pairwise(texts) if left.x1 > right.x0]
