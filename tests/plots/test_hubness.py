"""Does the line show the share of the queries that the most frequent candidates have?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import hubness, style


def _frame(counts, label="a.pt i2t"):
    return pd.DataFrame({"label": label, "count": counts})


def _curve(ax):
    line = ax.lines[0]
    return line.get_xdata(), line.get_ydata()


def test_the_line_adds_up_the_most_frequent_first():
    across, up = _curve(hubness.draw(_frame([0, 6, 1, 3])))
    np.testing.assert_allclose(across, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(up, [0, 0.6, 0.9, 1, 1])


def test_even_counts_are_the_diagonal():
    across, up = _curve(hubness.draw(_frame([2, 2, 2, 2])))
    np.testing.assert_allclose(across, up)


def test_a_number_over_all_batches_is_not_named_like_that_of_the_probe_within_a_batch():
    counts = np.random.default_rng(0).poisson(1.5, 500)
    ax = hubness.draw(_frame(counts))
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["a.pt i2t"]
    described = hubness.alt(_frame(counts))
    assert "over all batches" in described and f"{(counts == 0).mean():.0%} are never chosen" in described
    assert "skewness" not in described


def test_a_new_figure_has_its_legend_below_and_other_axes_inside():
    frame = pd.concat([_frame([1, 2], "a"), _frame([0, 3], "b")])
    for context in (style.paper, style.screen):
        with context():
            fig = hubness.draw(frame).figure
            assert [text.get_text()[:1] for text in fig.legends[0].get_texts()] == ["a", "b"]
    ax = style.new_figure().add_subplot()
    assert hubness.draw(frame, ax) is ax
    assert [text.get_text()[:1] for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_alt_states_the_share_of_the_first_tenth_and_the_never_chosen():
    text = hubness.alt(_frame([5] + [1] * 5 + [0] * 4))
    assert "the tenth chosen most often is the hardest negative of 50% of the queries, 40% are never chosen" in text
