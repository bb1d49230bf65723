"""Does the curve go through the means over seeds, and are the other objectives at their means?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import sensitivity, style

REFERENCE = pd.DataFrame({"label": ["Triplet-HN"] * 3 + ["VLC"], "rsum": [469.0, 470, 471, 480]})


def _frame(seeds=3):
    rows = [
        (parameter, value, seed, 450 + 10 * number + seed)
        for parameter, values in (("margin", (0.0, 0.1, 0.2)), ("gamma", (5.0, 20.0, 80.0)))
        for number, value in enumerate(values)
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=list(sensitivity.COLUMNS)).sample(frac=1, random_state=0)


def _margin(seeds=3):
    frame = _frame(seeds)
    return frame[frame["parameter"] == "margin"]


def test_the_curve_is_the_means_and_bars_are_sample_deviations():
    ax = sensitivity.draw(_margin())
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0, 0.1, 0.2])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [451, 461, 471])
    (bars,) = ax.containers
    np.testing.assert_allclose([bar[:, 1] for bar in bars[2][0].get_segments()], [[450, 452], [460, 462], [470, 472]])


def test_one_seed_has_no_bars():
    ax = sensitivity.draw(_margin(1))
    assert not ax.containers
    assert style.headline(ax.figure) == "rsum against margin; one seed each, so no intervals"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [450, 460, 470])


def test_others_are_lines_at_their_means_with_a_band_if_they_have_several_seeds():
    ax = sensitivity.draw(_margin(), reference=REFERENCE)
    level = {line.get_label(): line.get_ydata()[0] for line in ax.lines if line.get_label() in {"Triplet-HN", "VLC"}}
    assert level == {"Triplet-HN": 470, "VLC": 480}
    bands = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    assert [(band.y0, band.y1) for band in bands] == [(pytest.approx(469), pytest.approx(471))]
    assert {text.get_text() for text in ax.texts} == {"Triplet-HN", "VLC"}


def test_panels_share_rsum_and_hold_all_of_both():
    """Names of the lines fix the limits, which once cut off the second panel."""
    frame = _frame()
    frame.loc[frame["parameter"] == "gamma", "rsum"] += 40
    left, right = sensitivity.draw_many(frame, REFERENCE).axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] < 450 and right.get_ylim()[1] > 512
    assert (left.get_title(), right.get_title()) == ("(a)", "(b)")
    assert (left.get_xlabel(), right.get_xlabel()) == ("margin", "scale γ")
    assert not left.texts and len(right.texts) == 2


def test_the_headline_states_what_the_bars_are():
    assert style.headline(sensitivity.draw_many(_frame())).endswith("means and sample standard deviations of 3 seeds")
    frame = _frame().query("not (value == 0.1 and seed == 2)")
    assert style.headline(sensitivity.draw_many(frame)).endswith("of 2 to 3 seeds")


def test_far_values_are_on_a_logarithmic_axis_with_their_numbers():
    left, right = sensitivity.draw_many(_frame()).axes
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "log")
    right.figure.draw_without_rendering()
    assert [text.get_text() for text in right.get_xticklabels()] == ["5", "20", "80"]


def test_alt_states_the_best():
    text = sensitivity.alt(_frame(), REFERENCE)
    assert "margin: 451.0 at 0, 461.0 at 0.1, 471.0 at 0.2; best 0.2" in text
    assert text.endswith("For comparison Triplet-HN 470.0, VLC 480.0.")
