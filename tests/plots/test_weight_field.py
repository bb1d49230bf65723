"""Do both panels show the weights of the frame, pulls and pushes as positive numbers, each on its own scale?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh

from lossscope.plots import style, weight_field
from tests.each import each

AXIS = np.linspace(-1, 1, 41)


def _frame(pull, push, name="nca"):
    p, n = (part.ravel() for part in np.meshgrid(AXIS, AXIS))
    rows = pd.DataFrame({"objective": name, "s_pos": p, "s_neg": n, "w_pos": -pull(p, n), "w_neg": push(p, n)})
    return rows.sample(frac=1, random_state=0)


def _nca(p, n):
    return 1 / (1 + np.exp(3 * (p - n)))


def _flat(p, n):
    return 2 + 0 * p


def _panels(fig):
    """Return the two panels, and the colour bar of each."""
    left, first, right, second = fig.axes
    return (left, first), (right, second)


def _title(ax):
    return ax.get_title() or ax.get_title(loc="left")


def _mesh(ax):
    return next(item for item in ax.collections if isinstance(item, QuadMesh))


def test_left_is_the_pull_right_the_push():
    fig = weight_field.draw(_frame(_nca, lambda p, n: 5 * n**2))
    (left, _), (right, _) = _panels(fig)
    assert _mesh(left).get_array()[30, 10] == pytest.approx(_nca(AXIS[10], AXIS[30]))
    assert _mesh(right).get_array()[30, 10] == pytest.approx(5 * AXIS[30] ** 2)
    assert "pull on the positive" in _title(left)
    assert (_mesh(left).get_clim(), _mesh(right).get_clim()) == ((0, pytest.approx(0.998)), (0, 5))
    assert style.headline(fig) == "Weights of nca on a query with two candidates"
    assert (left.get_xlabel(), right.get_ylabel()) == ("positive similarity $s_+$", "")


def test_what_does_the_opposite_is_signed_and_its_scale_symmetric():
    (left, _), (right, _) = _panels(weight_field.draw(_frame(_nca, lambda p, n: 2 * n)))
    assert _mesh(left).get_clim()[0] == 0
    assert _mesh(right).get_clim() == (-2, 2)
    assert _mesh(left).get_cmap().name != _mesh(right).get_cmap().name


def test_colours_may_end_before_the_largest_weight_which_the_title_states():
    (left, _), (right, bar) = _panels(weight_field.draw(_frame(_nca, lambda p, n: 7 * (n + 1)), top=3))
    assert _mesh(left).get_clim()[1] < 1
    assert _mesh(right).get_clim() == (0, 3)
    assert _title(right).endswith("0 to 14")
    assert bar.get_ylim() == (0, 3)


def test_a_slope_has_lines_and_a_cliff_or_a_plain_has_none():
    fig = weight_field.draw(_frame(_nca, lambda p, n: (n > p) * 1.0))
    (left, bar), (right, cliff) = _panels(fig)
    lines = next(item for item in left.collections if hasattr(item, "levels"))
    assert list(lines.levels) == [0.2, 0.4, 0.6, 0.8]
    assert len(right.collections) == 1
    assert len(bar.collections) > len(cliff.collections)
    assert all(len(ax.collections) == 1 for ax, _ in _panels(weight_field.draw(_frame(_flat, _flat))))


def test_lines_are_labelled_in_the_unit_of_the_colour_bar():
    """The lines stated shares, 0.1 to 0.9, beside a bar from 0 to 10."""
    (left, bar), _ = _panels(weight_field.draw(_frame(lambda p, n: 10 * _nca(p, n), _nca)))
    lines = next(item for item in left.collections if hasattr(item, "levels"))
    assert list(lines.levels) == [2, 4, 6, 8]
    assert [text.get_text() for text in left.texts] == ["2", "6", "8"]
    assert bar.get_ylim() == (0, pytest.approx(9.98))
    for text in left.texts:
        x, y = text.get_position()
        assert 10 * _nca(x, y) == pytest.approx(float(text.get_text()), rel=0.05)


@each(
    "push, text_range",
    [(_flat, "2 everywhere"), (lambda p, n: 0 * p, "0 everywhere"), (lambda p, n: 1e-9 + n**2, "0 to 1")],
)
def test_ranges_are_stated(push, text_range):
    text = weight_field.alt(_frame(_nca, push))
    assert text.endswith(f"push on the negative {text_range}.")
    assert "nca: pull on the positive 0.00247 to 0.998" in text


def test_a_range_below_zero_has_a_minus_sign():
    assert "push on the negative −1 to 1" in weight_field.alt(_frame(_nca, lambda p, n: n))


def test_saved_with_few_colours(tmp_path):
    with style.paper():
        path = style.save(weight_field.draw(_frame(_nca, _nca)), tmp_path / "a.png")
    assert path.stat().st_size < 120_000
