"""Are the parts of each bar as long as the weights, and end to end?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.plots import style, weight_mass

MASS = {"ntxent": {"W_pos": 0.75, "W_neg": 0.5, "W_low": 0.25}, "triplet": {"W_pos": 4.0, "W_neg": 4.0, "W_low": 0.0}}


def _frame():
    rows = [
        (label, direction, statistic, mean)
        for direction in ("i2t", "t2i")
        for label, parts in MASS.items()
        for statistic, mean in {**parts, "share_above": 0.5}.items()
    ]
    return pd.DataFrame(rows, columns=list(weight_mass.COLUMNS))


def _bars(ax):
    """Return part -> (left, width) of every bar, from the top."""
    return {bars.get_label(): [(bar.get_x(), bar.get_width()) for bar in bars] for bars in ax.containers}


def test_parts_lie_end_to_end():
    ax = weight_mass.draw(_frame())
    bars = _bars(ax)
    assert list(bars) == [name for _, _, name in weight_mass.PARTS.values()]
    assert bars["on the positive"] == [(0, 0.75), (0, 0.75), (0, 4), (0, 4)]
    assert bars["on negatives above ε"] == [(0.75, 0.5)] * 2 + [(4, 4)] * 2
    assert bars["on negatives up to ε"] == [(1.25, 0.25)] * 2 + [(8, 0)] * 2
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["ntxent, i2t", "ntxent, t2i", "triplet, i2t", "triplet, t2i"]
    assert list(ax.get_yticks()) == [3, 2, 1, 0]


def test_shares_add_up_to_one():
    bars = _bars(weight_mass.draw(_frame(), share=True))
    ends = [left + width for left, width in bars["on negatives up to ε"]]
    np.testing.assert_allclose(ends, 1)
    assert bars["on the positive"][2] == (0, 0.5)


def test_a_part_that_is_not_known_is_marked():
    frame = _frame()
    frame = frame[~((frame["label"] == "triplet") & (frame["statistic"] == "W_low"))]
    ax = weight_mass.draw(frame)
    assert [text.get_text().endswith(" ?") for text in ax.get_yticklabels()] == [False, False, True, True]
    assert (
        "triplet i2t: on the positive 4, on negatives above eps 4, on negatives up to eps unknown"
        in weight_mass.alt(frame)
    )


def test_a_query_without_weight_has_no_bar():
    frame = _frame().assign(mean=0.0)
    assert all(width == 0 for bars in _bars(weight_mass.draw(frame, share=True)).values() for _, width in bars)


@pytest.mark.parametrize("context", [style.paper, style.screen])
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


def test_frames_that_do_not_fit():
    frame = _frame()
    with pytest.raises(InputError, match="Add mean"):
        weight_mass.draw(frame.drop(columns="mean"))
    with pytest.raises(InputError, match="direction must be i2t or t2i; got both"):
        weight_mass.draw(frame.assign(direction="both"))
    with pytest.raises(InputError, match="Run the probe weight_mass"):
        weight_mass.draw(frame.assign(statistic="C_0"))
    with pytest.raises(InputError, match="got some twice"):
        weight_mass.draw(pd.concat([frame, frame]))
