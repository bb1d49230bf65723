"""Do the names of lines not overlap, and is the legend inside the picture?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lossscope.plots import naming, style

pytestmark = pytest.mark.usefixtures("fitted")


def test_a_legend_below_is_inside_the_picture_and_wrapped():
    fig = style.new_figure()
    fig.add_subplot()
    lines = fig.axes[0].plot([0, 1], [0, 1], label="a word " * 40) + fig.axes[0].plot([0, 1], [1, 1], label="b")
    before = fig.get_figheight()
    naming.legend_below(fig, lines, "what it shows " * 20)
    fig.draw_without_rendering()
    box = fig.legends[0].get_window_extent()
    assert fig.get_figheight() > before
    assert box.x0 >= 0 and box.x1 <= fig.bbox.x1 and box.y0 >= 0
    assert fig.axes[0].get_window_extent().y0 > box.y1


def test_labels_keep_apart_and_in_order():
    apart = naming._keep_apart([0.5, 0.52, 0.51, 0.0, 1.0], 0.1)
    assert all(b - a > 0.1 - 1e-9 for a, b in pairwise(sorted(apart)))
    assert list(np.argsort(apart)) == [3, 0, 2, 1, 4]
    assert naming._keep_apart([0.1, 0.9], 0.1) == [0.1, 0.9]
