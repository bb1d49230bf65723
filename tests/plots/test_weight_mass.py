"""Do bars and panels show the negatives' weight above and up to eps, its total and its concentration?"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from lossscope.plots import style, weight_mass
from tests.each import each

MASS = {
    "ntxent": {"W_pos": 0.75, "W_neg": 0.5, "W_low": 0.25, "N_eff": 12.0},
    "triplet": {"W_pos": 4.0, "W_neg": 4.0, "W_low": 0.0, "N_eff": 4.0},
}


def _frame():
    rows = [
        (label, direction, statistic, mean)
        for direction in ("i2t", "t2i")
        for label, parts in MASS.items()
        for statistic, mean in {**parts, "share_above": 0.5}.items()
    ]
    return pd.DataFrame(rows, columns=list(weight_mass.COLUMNS))


def _seeds(*factors):
    """Return a frame for each seed; its weights are those of `_frame` times a factor."""
    return pd.concat(
        [_frame().assign(seed=seed, mean=lambda rows, by=by: by * rows["mean"]) for seed, by in enumerate(factors)]
    )


def _bars(ax):
    """Return part -> (left, width) of every bar, from the top."""
    return {bars.get_label(): [(bar.get_x(), bar.get_width()) for bar in bars] for bars in ax.containers}


def _marks(ax):
    """Return (x, half the length of the bar or None) of every mark."""
    marks = []
    for item in ax.containers:
        assert isinstance(item, ErrorbarContainer)
        half = float(np.ptp(item[2][0].get_segments()[0], axis=0).max() / 2) if item[2] else None
        marks.append((float(item[0].get_xdata()[0]), half))
    return marks


def test_parts_of_the_negatives_lie_end_to_end_and_the_positive_has_none():
    """Half of every bar was the weight on the positive, 50 % by construction."""
    ax = weight_mass.draw(_frame())
    bars = _bars(ax)
    assert list(bars) == ["on negatives above ε", "on negatives up to ε"]
    assert bars["on negatives above ε"] == [(0, 0.5)] * 2 + [(0, 4)] * 2
    assert bars["on negatives up to ε"] == [(0.5, 0.25)] * 2 + [(4, 0)] * 2
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["NT-Xent, i2t", "NT-Xent, t2i", "Triplet, i2t", "Triplet, t2i"]
    assert list(ax.get_yticks()) == [3, 2, 1, 0]


def test_shares_add_up_to_a_hundred_per_cent():
    bars = _bars(weight_mass.draw(_frame(), share=True))
    np.testing.assert_allclose([left + width for left, width in bars["on negatives up to ε"]], 100)
    assert bars["on negatives above ε"][0] == (0, pytest.approx(200 / 3))


def test_panels_are_share_total_and_concentration():
    fig = weight_mass.draw_many(_frame())
    assert [ax.get_xlabel() for ax in fig.axes] == list(weight_mass.PANELS.values())
    share, total, n_eff = ([x for x, _ in _marks(ax)] for ax in fig.axes)
    assert share == pytest.approx([200 / 3, 200 / 3, 100, 100])
    assert total == [0.75, 0.75, 4, 4]
    assert n_eff == [12, 12, 4, 4]
    assert [text.get_text() for text in fig.axes[0].get_yticklabels()] == ["NT-Xent", "Triplet"]
    assert "no intervals" in fig.legends[0].get_title().get_text()


def test_without_n_eff_there_are_two_panels():
    frame = _frame()
    assert len(weight_mass.draw_many(frame[frame["statistic"] != "N_eff"]).axes) == 2


def test_several_seeds_have_bars_of_their_deviation():
    fig = weight_mass.draw_many(_seeds(0.8, 1.0, 1.2))
    share, total, _ = fig.axes
    assert all(half is None for _, half in _marks(share))  # the same share in all seeds
    assert _marks(total)[0] == (pytest.approx(0.75), pytest.approx(0.75 * 0.2))
    assert fig.legends[0].get_title().get_text().startswith("Means over 3 seeds")
    np.testing.assert_allclose(_bars(weight_mass.draw(_seeds(0.8, 1.2)))["on negatives above ε"][0], (0, 0.5))


def test_totals_far_apart_are_on_a_logarithmic_axis():
    frame = _frame()
    frame.loc[frame["label"] == "triplet", "mean"] *= 10
    assert [ax.get_xscale() for ax in weight_mass.draw_many(frame).axes] == ["linear", "log", "linear"]


def test_a_part_that_is_not_known_is_marked_and_its_share_is_not_drawn():
    frame = _frame()
    frame = frame[~((frame["label"] == "triplet") & (frame["statistic"] == "W_low"))]
    ax = weight_mass.draw(frame)
    assert [text.get_text().endswith(" ?") for text in ax.get_yticklabels()] == [False, False, True, True]
    assert "Triplet i2t: on negatives above eps 4, on negatives up to eps unknown" in weight_mass.alt(frame)
    assert len(_marks(weight_mass.draw_many(frame).axes[0])) == 2


def test_alt_states_the_concentration():
    assert "NT-Xent t2i: on negatives above eps 0.5, on negatives up to eps 0.25, effective number of negatives 12" in (
        weight_mass.alt(_frame())
    )


def test_a_query_without_weight_has_no_bar():
    frame = _frame().assign(mean=0.0)
    assert all(width == 0 for bars in _bars(weight_mass.draw(frame, share=True)).values() for _, width in bars)


@pytest.mark.usefixtures("fitted")
@each("context", [style.paper, style.screen])
def test_other_axes_or_a_new_figure(context):
    with context():
        fig = style.new_figure()
        ax = fig.add_subplot()
        assert weight_mass.draw(_frame(), ax) is ax
        assert ax.get_legend() is not None and not fig.legends
        figure = weight_mass.draw(_frame()).figure
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


LONG = ("unified:margin=0.2,gamma=20", "goal:triplet=cir,pair=sig-ms", "multi_similarity:alpha=2,beta=50", "Triplet")


@pytest.mark.usefixtures("fitted")
@each("draw", [weight_mass.draw, weight_mass.draw_many], "use", [style.screen, style.paper])
def test_names_of_many_losses_do_not_overlap(draw, use):
    """Names of four lines overlapped, as the rows were two lines high."""
    parts = ("W_neg", "W_low")
    rows = [(label, side, part, 1.0) for label in LONG for side in ("i2t", "t2i") for part in parts]
    with use():
        drawn = draw(pd.DataFrame(rows, columns=["label", "direction", "statistic", "mean"]))
        fig = getattr(drawn, "figure", drawn)
        fig.draw_without_rendering()
        boxes = [text.get_window_extent() for text in fig.axes[0].get_yticklabels() if text.get_text()]
    boxes.sort(key=lambda box: box.y0)
    assert len(boxes) >= len(LONG)
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))
