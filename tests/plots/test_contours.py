"""Are lines of equal weight at round numbers, and are their labels readable?"""

from __future__ import annotations

import numpy as np
import pytest

from lossscope.plots import contours, style
from tests.each import each

AXIS = np.linspace(-1, 1, 81)


@each("largest, levels", [
    (1.0, [0.2, 0.4, 0.6, 0.8]),
    (10.0, [2, 4, 6, 8]),
    (14.3, [2.5, 5, 7.5, 10, 12.5]),
    (576.0, [100, 200, 300, 400, 500]),
])  # fmt: skip
def test_levels_are_round_and_within_the_weights(largest, levels):
    assert contours.round_levels(largest, 6) == levels


def test_the_first_middle_and_last_level_are_labelled():
    assert contours.outer_and_middle([1.0, 2.0, 3.0, 4.0, 5.0]) == [1, 3, 5]
    assert contours.outer_and_middle([1.0]) == [1]


def test_numbers_stand_off_the_edges_and_off_cliffs():
    """Numbers once stood on the edge of the panel, and on a cliff that all lines follow."""
    x, y = np.meshgrid(AXIS, AXIS)
    w = np.where(y > x, (1 - x) / 2, 0.0)
    ax = style.new_figure().add_subplot()
    mesh = ax.pcolormesh(AXIS, AXIS, w, shading="nearest", cmap="cividis")
    contours.draw_lines(ax, mesh, (AXIS, AXIS), w, [0.5, 0.75], [0.5, 0.75])
    assert [text.get_text() for text in ax.texts] == ["0.5", "0.75"]
    for text in ax.texts:
        x_text, y_text = text.get_position()
        assert max(abs(x_text), abs(y_text)) < 0.8
        assert (1 - x_text) / 2 == pytest.approx(float(text.get_text()), abs=0.03)
        assert y_text > x_text
