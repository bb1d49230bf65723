"""Do the curves show the weights, on the right side, under the right names?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import pair_curves, style
from tests.each import each

S = np.linspace(0, 1, 11)


def _frame():
    curves = {"con": (1 + 0 * S, 1 + 0 * S), "lin": (1 - S, S)}
    parts = [
        pd.DataFrame({"label": label, "side": side, "s": S, "weight": weight})
        for label, pair in curves.items()
        for side, weight in zip(("positive", "negative"), pair, strict=True)
    ]
    return pd.concat(parts).sample(frac=1, random_state=1).sort_values("label", kind="stable")


def test_two_panels_one_line_per_label():
    left, right = pair_curves.draw_many(_frame()).axes
    assert "s_+" in left.get_xlabel()
    assert "s_-" in right.get_xlabel()
    for ax, lin in ((left, 1 - S), (right, S)):
        lines = {line.get_label(): line for line in ax.lines}
        assert set(lines) == {"constant", "linear"}
        np.testing.assert_allclose(lines["linear"].get_xdata(), S)
        np.testing.assert_allclose(lines["linear"].get_ydata(), lin)
        assert {text.get_text() for text in ax.texts} == {"constant", "linear"}


def test_one_panel_names_both_sides():
    ax = pair_curves.draw(_frame())
    assert {text.get_text() for text in ax.texts} == {
        "constant, positive", "constant, negative", "linear, positive", "linear, negative"
    }  # fmt: skip


def test_one_side_alone():
    frame = _frame()
    assert len(pair_curves.draw_many(frame[frame["side"] == "negative"]).axes) == 1


@pytest.mark.usefixtures("fitted")
@each("context", [style.paper, style.screen])
def test_long_names_are_below_and_leave_the_panels_their_width(context):
    """Specs beside the panels once left the panels a tenth of a paper's column."""
    frame = _frame().replace({"label": {"lin": "goal:triplet=cir,pair=lin (other: s₋ 0.77, s₊ 0.79)"}})
    with context():
        fig = pair_curves.draw_many(frame)
        fig.draw_without_rendering()
        assert len(fig.legends[0].get_texts()) == 2
        assert all(ax.bbox.width > 0.3 * fig.bbox.width for ax in fig.axes)
        assert not [text for ax in fig.axes for text in ax.texts]


def test_alt_states_the_ends():
    assert "linear, positive: 1 at similarity 0.00, 0 at 1.00" in pair_curves.alt(_frame())
