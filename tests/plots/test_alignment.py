"""Are the cells of the heat map the cosines, in the order of leaves, with a frame around each cluster?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from lossscope.plots import alignment
from tests.plots.frames import FRAMES


def test_cells_are_cosines_in_the_order_of_leaves_and_unknown_ones_are_empty() -> None:
    frame = FRAMES[alignment]()[0]
    frame = frame.assign(a_order=frame["a"].map({"ntxent": 2.0, "triplet_sh": 3.0, "circle": 1.0}))
    ax = alignment.draw(frame)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Circle", "NT-Xent", "Triplet SH"]
    shown = np.ma.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown.filled(9), [[1, -0.2, 9], [-0.2, 1, 0.95], [9, 0.95, 1]])
    assert [text.get_text() for text in ax.texts[:2]] == ["1.00", "−0.20"] and len(ax.texts) == 7


def test_each_cluster_has_a_frame_around_its_losses() -> None:
    ax = alignment.draw(FRAMES[alignment]()[0])
    frames = [(patch.get_xy(), patch.get_width()) for patch in ax.patches if isinstance(patch, Rectangle)]
    assert frames == [((-0.5, -0.5), 2), ((1.5, 1.5), 1)]


def test_each_space_has_a_panel_and_words_name_the_most_and_least_alike() -> None:
    frame = FRAMES[alignment]()[1]
    assert len(alignment.draw_many(frame).axes) == 3
    assert "2 clusters of 3 losses; most alike NT-Xent and Triplet SH 0.95" in alignment.alt(frame)
    layers = frame[frame["space"] == "parameters"].assign(layer="text.rnn")
    assert len(alignment.draw_many(pd.concat([frame, layers])).axes) == 3
