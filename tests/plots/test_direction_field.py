"""Does each arrow point in the direction of descent, with the colour of the gradient's size?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.quiver import Quiver

from lossscope.engine.weight_fields import weight_field
from lossscope.plots import direction_field, style
from tests.each import each


def _frame(w_pos, w_neg, points=33, name="own"):
    steps = np.linspace(-1, 1, points)
    p, n = (part.ravel() for part in np.meshgrid(steps, steps))
    rows = pd.DataFrame({"objective": name, "s_pos": p, "s_neg": n, "w_pos": w_pos(p, n), "w_neg": w_neg(p, n)})
    return rows.sample(frac=1, random_state=0)


def _arrows(ax):
    return next(item for item in ax.collections if isinstance(item, Quiver))


def _still(ax):
    return next(item for item in ax.collections if item.get_label() == "still").get_offsets()


def test_arrows_point_down_the_gradient_and_have_one_length():
    arrows = _arrows(direction_field.draw(_frame(lambda p, n: -(2 + p), lambda p, n: 3 + n)))
    p, n = arrows.get_offsets().T
    size = np.hypot(2 + p, 3 + n)
    np.testing.assert_allclose(arrows.get_array(), size)
    length = np.hypot(arrows.U, arrows.V)
    np.testing.assert_allclose(length, length[0])
    np.testing.assert_allclose(arrows.U / length, (2 + p) / size)
    np.testing.assert_allclose(arrows.V / length, -(3 + n) / size)
    assert arrows.get_clim() == (0, pytest.approx(np.hypot(3, 4)))


def test_a_field_of_ntxent_points_along_the_diagonal_downwards():
    arrows = _arrows(direction_field.draw(weight_field("ntxent:tau=0.1", points=33)))
    np.testing.assert_allclose(arrows.U, -arrows.V)
    assert (arrows.U > 0).all()
    p, n = arrows.get_offsets().T
    np.testing.assert_allclose(arrows.get_array(), np.sqrt(2) * 10 / (1 + np.exp(10 * (p - n))))


def test_points_without_a_gradient_are_dots():
    ax = direction_field.draw(weight_field("triplet:margin=0.2", points=33))
    p, n = _arrows(ax).get_offsets().T
    assert (n - p + 0.2 > 0).all()
    still = _still(ax)
    assert (still[:, 1] - still[:, 0] + 0.2 <= 0).all()
    assert len(p) + len(still) == direction_field.ARROWS**2


@each("points, side", [(2, 2), (17, 17), (18, 9), (33, 17), (41, 14), (201, 16)])
def test_of_any_grid_at_most_17_arrows_a_side_evenly_spaced(points, side):
    arrows = _arrows(direction_field.draw(_frame(lambda p, n: -1 + 0 * p, lambda p, n: 1 + 0 * p, points)))
    across = np.unique(arrows.get_offsets()[:, 0])
    assert len(across) == side <= direction_field.ARROWS
    np.testing.assert_allclose(np.diff(across), np.diff(across)[0])
    np.testing.assert_allclose(across[0], -across[-1], atol=2 / (points - 1))


def test_a_field_of_zeros_is_all_dots():
    ax = direction_field.draw(_frame(lambda p, n: 0 * p, lambda p, n: 0 * p))
    assert len(_still(ax)) == direction_field.ARROWS**2


def test_many_are_shares_of_their_own_largest():
    field = _frame(lambda p, n: -1 + 0 * p, lambda p, n: 0 * p, 9, "o1")
    fig = direction_field.draw_many(pd.concat([field, field.assign(objective="o50", w_pos=50 * field["w_pos"])]))
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == 2 and len(fig.axes) == 3
    for ax, top in zip(panels, ("1", "50"), strict=True):
        np.testing.assert_allclose(_arrows(ax).get_array(), 1)
        assert ax.get_title().endswith(f"largest {top}")


def test_alt_states_the_directions():
    text = direction_field.alt(_frame(lambda p, n: -1 + 0 * p, lambda p, n: np.where(n > 0, 0.0, 2.0), 20))
    assert "own: largest 2.24" in text
    assert "0% of the plane is not moved; of the rest 50% is mostly pulled towards the positive and 50% mostly" in text


def test_saved_in_both_styles(tmp_path):
    for name, context in (("p", style.paper), ("s", style.screen)):
        with context():
            fig = direction_field.draw_many(weight_field("triplet", points=21))
            assert style.save(fig, tmp_path / f"{name}.pdf").stat().st_size < 60_000
