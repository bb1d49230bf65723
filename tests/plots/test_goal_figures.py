"""Do GOAL's Figures 2 and 3, drawn from the objective's own weights, agree with their captions and equations?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

from lossscope.engine.weight_fields import PAIRS, TRIPLETS, pair_curves, weight_field
from lossscope.plots import labels, style, triplet_field
from lossscope.plots import pair_curves as lines

TAU, MARGIN, ALPHA, BETA, LAMBDA, M = 10.0, 0.2, 2.0, 10.0, 0.5, 0.1
P = {
    "con": (np.ones_like, np.ones_like),
    "lin": (lambda s: 1 - s, lambda s: s),
    "sig": (lambda s: 1 / (1 + np.exp(ALPHA * (s - LAMBDA))), lambda s: 1 / (1 + np.exp(-BETA * (s - LAMBDA)))),
    "lin-ms": (lambda s: (1 - M) * (1 - s), lambda s: (1 + M) * s),
    "sig-ms": (lambda s: 1 / (M + np.exp(ALPHA * (s - LAMBDA))), lambda s: 1 / (M + np.exp(-BETA * (s - LAMBDA)))),
}


@pytest.fixture(scope="module")
def figure() -> Figure:
    fields = pd.concat([weight_field(f"goal:triplet={name}").assign(objective=name) for name in TRIPLETS])
    with style.paper():
        return triplet_field.draw_many(fields, margin={"con": MARGIN})


def _lines(ax):
    """Return level -> vertices of its line."""
    contours = [item for item in ax.collections if isinstance(item, ContourSet)]
    return {
        level: path.vertices
        for item in contours
        for level, path in zip(item.levels, item.get_paths(), strict=True)
        if len(path)
    }


def _logit(level, top):
    """Return x with 1 / (1 + exp(x)) = level * top."""
    return np.log(1 / (level * top) - 1)


def test_three_panels_of_all_similarities(figure):
    panels = triplet_field.panels(figure)
    assert len(panels) == 3
    for ax in panels:
        assert (ax.get_xlim(), ax.get_ylim(), ax.get_aspect()) == ((-1, 1), (-1, 1), 1)


def test_the_constant_weight_is_a_step_at_the_margin(figure):
    con = triplet_field.panels(figure)[0]
    assert _lines(con) == {}
    (line,) = con.lines
    assert (line.get_slope(), line.get_xy1()) == (1, (0, -MARGIN))
    values, axis = np.asarray(con.images[0].get_array()), np.linspace(-1, 1, 201)
    across = axis[None, :] - axis[:, None]
    assert (values[across < MARGIN - 1e-9] == 1).all()
    assert (values[across > MARGIN + 1e-9] == 0).all()
    assert [len(ax.lines) for ax in triplet_field.panels(figure)[1:]] == [0, 0]


def test_equal_weights_of_nca_lie_on_lines_of_equal_difference(figure):
    contours = _lines(triplet_field.panels(figure)[1])
    assert list(contours) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    top = 1 / (1 + np.exp(-2 * TAU))
    for level, points in contours.items():
        np.testing.assert_allclose(points[:, 0] - points[:, 1], _logit(level, top) / TAU, atol=1e-4)


def test_equal_weights_of_cir_lie_on_circles_around_one_zero(figure):
    contours = _lines(triplet_field.panels(figure)[2])
    assert list(contours) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    top = 1 / (1 + np.exp(TAU * (-1 * (2 + 1) - 1)))  # at s+ = -1, s- = 1
    for level, points in contours.items():
        radius = np.sqrt(1 - _logit(level, top) / TAU)  # s+ (2 - s+) - s-^2 = 1 - radius^2
        np.testing.assert_allclose(np.hypot(points[:, 0] - 1, points[:, 1]), radius, atol=1e-3)
        assert np.ptp(np.arctan2(points[:, 1], 1 - points[:, 0])) > 2


def test_the_curves_equal_the_equations_at_the_parameters_of_the_caption():
    fig = lines.draw_many(pair_curves())
    for side, ax in enumerate(fig.axes):
        assert [line.get_label() for line in ax.lines] == [labels.PAIR_WEIGHTS[name] for name in PAIRS]
        for name, line in zip(PAIRS, ax.lines, strict=True):
            np.testing.assert_allclose(line.get_xdata()[[0, -1]], [0, 1])
            np.testing.assert_allclose(line.get_ydata(), P[name][side](line.get_xdata()), atol=1e-12)


def test_one_line_far_above_the_others_does_not_press_them_together():
    left, right = lines.draw_many(pair_curves()).axes
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "asinh")
    assert "asinh" in right.get_ylabel()
    low, high = right.get_ylim()
    assert low <= 0 and high >= P["sig-ms"][1](1.0)
    unit_height = right.transData.transform((0, 1))[1] - right.transData.transform((0, 0))[1]
    assert unit_height > 0.28 * right.bbox.height


def test_the_drawn_lines_have_no_kink():
    """A scale that was linear to 1 and logarithmic above bent sig-ms by a third in a hundredth of the axis."""
    right = lines.draw_many(pair_curves()).axes[1]
    curve = right.lines[-1]
    x, y = right.transData.transform(np.stack([curve.get_xdata(), curve.get_ydata()], 1)).T
    slope = np.diff(y) / np.diff(x)
    assert np.abs(np.diff(slope)).max() < 0.12 * slope.max()
