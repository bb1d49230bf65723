"""Do heat map and contour lines show the weights of the frame?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.contour import ContourSet

from lossscope.plots import contours, style, triplet_field
from tests.each import each

AXIS = np.linspace(0, 1, 101)


def _nca(p, n):
    return 1 / (1 + np.exp(10 * (p - n)))


def _cir(p, n):
    return 1 / (1 + np.exp(10 * (p * (2 - p) - n**2)))


def _frame(weight, name="nca"):
    p, n = (part.ravel() for part in np.meshgrid(AXIS, AXIS))
    w = weight(p, n)
    rows = pd.DataFrame({"objective": name, "s_pos": p, "s_neg": n, "w_pos": -w, "w_neg": w})
    return rows.sample(frac=1, random_state=0)


def _lines(ax):
    lines = next(item for item in ax.collections if isinstance(item, ContourSet))
    return [(lv, path.vertices) for lv, path in zip(lines.levels, lines.get_paths(), strict=True) if len(path)]


def _mesh(ax):
    (image,) = ax.images
    return image


def test_the_mesh_has_the_weights():
    ax = triplet_field.draw(_frame(_nca))
    values = _mesh(ax).get_array()
    assert values.shape == (101, 101)
    assert values[80, 20] == pytest.approx(_nca(AXIS[20], AXIS[80]))
    assert ax.get_title() == "nca"


def test_lines_of_nca_are_straight_with_slope_one():
    ax = triplet_field.draw(_frame(_nca))
    lines = _lines(ax)
    assert len(lines) == 9
    for level, points in lines:
        offset = np.log(1 / level - 1) / 10  # s_pos - s_neg where the weight is the level
        np.testing.assert_allclose(points[:, 0] - points[:, 1], offset, atol=1e-3)


def test_lines_of_cir_are_circles_around_one_zero():
    ax = triplet_field.draw(_frame(_cir))
    for level, points in _lines(ax):
        radius = np.sqrt(1 - np.log(1 / level - 1) / 10)
        np.testing.assert_allclose(np.hypot(points[:, 0] - 1, points[:, 1]), radius, atol=1e-3)


def test_margin_line_and_step():
    ax = triplet_field.draw(_frame(lambda p, n: (0.2 + n - p > 0) * 1.0), margin=0.2)
    assert not any(isinstance(item, ContourSet) for item in ax.collections)
    line = ax.lines[0]
    assert line.get_slope() == 1
    assert line.get_xy1() == (0.0, -0.2)
    assert [text.get_text() for text in ax.texts] == ["$s_- = s_+$ − 0.2"]


def test_a_margin_line_outside_the_panel_has_no_name():
    ax = triplet_field.draw(_frame(_nca), margin=2.5)
    assert len(ax.lines) == 1
    assert not [text for text in ax.texts if "s_+" in text.get_text()]


def test_a_steep_slope_has_one_line():
    ax = triplet_field.draw(_frame(lambda p, n: 1 / (1 + np.exp(200 * (p - n)))))
    assert [level for level, _ in _lines(ax)] == [pytest.approx(0.5)]


def test_lines_are_labelled_in_the_unit_of_the_colour_bar():
    """The lines stated shares, 0.1 to 0.9, beside a bar from 0 to 10."""
    ax = triplet_field.draw(_frame(lambda p, n: 20 * _nca(p / 4, n / 4)))
    low, high = _mesh(ax).get_clim()
    for text in ax.texts:
        x, y = text.get_position()
        assert low < float(text.get_text()) < high
        assert 20 * _nca(x / 4, y / 4) == pytest.approx(float(text.get_text()), rel=0.02)
    assert len(ax.texts) >= 3


@each("pale", [False, True])
def test_labels_are_readable_on_every_colour(pale):
    """Black text once stood on dark blue."""
    ax = triplet_field.draw(_frame(lambda p, n: 5 * _nca(p / 4, n / 4)), pale=pale)
    for text in ax.texts:
        bright = contours.luminance(_mesh(ax), float(text.get_text()))
        assert abs(bright - np.mean(to_rgb(text.get_color()))) > 0.35
        assert text.get_path_effects()


def test_margins_go_to_the_panels_that_have_them():
    frame = pd.concat([_frame(_nca, "a"), _frame(_nca, "b")])
    assert [len(ax.lines) for ax in triplet_field.panels(triplet_field.draw_many(frame, margin={"b": 0.2}))] == [0, 1]
    assert [len(ax.lines) for ax in triplet_field.panels(triplet_field.draw_many(frame, margin=0.2))] == [1, 1]


def test_a_pale_field_is_grey_and_never_black():
    mesh = _mesh(triplet_field.draw(_frame(_nca), pale=True))
    shades = mesh.get_cmap()(np.linspace(0, 1, 9))
    assert np.ptp(shades[:, :3], axis=1).max() < 0.01
    assert shades[:, 0].min() > 0.5


def test_a_weight_that_pulls_is_negated():
    ax = triplet_field.draw(_frame(_nca), value="w_pos")
    assert _mesh(ax).get_array().min() >= 0
    assert "minus weight on the positive" in [other.get_ylabel() for other in ax.figure.axes]


def test_mixed_signs_share_a_symmetric_scale():
    ax = triplet_field.draw(_frame(lambda p, n: (n - 0.5) * _nca(p, n)))
    low, high = _mesh(ax).get_clim()
    assert low == -high


def test_a_flat_or_unknown_field_has_no_lines():
    assert len(triplet_field.draw(_frame(lambda p, n: 0 * p)).collections) == 0
    assert len(triplet_field.draw(_frame(lambda p, n: 1 + 0 * p)).collections) == 0


def test_many_share_one_bar():
    frame = pd.concat([_frame(_nca), _frame(lambda p, n: 50 * _cir(p, n), "cir"), _frame(_nca, "c")])
    fig = triplet_field.draw_many(frame, margin=0.1)
    panels = [ax for ax in fig.axes if ax.get_title(loc="left") or ax.get_title()]
    assert len(panels) == 3
    assert len(fig.axes) == 4
    assert {_mesh(ax).get_clim() for ax in panels} == {(0.0, 1.0)}


def test_many_of_one_style(tmp_path):
    with style.paper():
        fig = triplet_field.draw_many(pd.concat([_frame(_nca, f"o{k}") for k in range(5)]))
    assert style.save(fig, tmp_path / "a.svg").stat().st_size < 2_000_000


def test_alt_states_where_the_largest_weight_is():
    text = triplet_field.alt(_frame(_nca))
    assert "nca: largest weight 1 at positive similarity 0.00 and negative similarity 1.00" in text


def test_panels_share_one_colour_map_when_one_of_them_pulls() -> None:
    """There is one colour bar, so a panel with pushes only must not be drawn with another map."""
    steps = np.linspace(-1, 1, 5)
    s_pos, s_neg = (grid.ravel() for grid in np.meshgrid(steps, steps))
    both = [
        pd.DataFrame({"objective": name, "s_pos": s_pos, "s_neg": s_neg, "w_pos": -w, "w_neg": w})
        for name, w in (("pushes", (s_neg + 1) / 2), ("pulls too", s_neg))
    ]
    figure = triplet_field.draw_many(pd.concat(both, ignore_index=True))
    meshes = [_mesh(ax) for ax in figure.axes[:2]]
    assert meshes[0].get_cmap().name == meshes[1].get_cmap().name
    assert meshes[0].get_clim() == meshes[1].get_clim() == (-1, 1)


def test_no_panel_makes_a_pdf_hold_the_whole_figure():
    frame = pd.concat([_frame(_nca).assign(objective=name) for name in ("a", "b", "c")])
    panels = triplet_field.panels(triplet_field.draw_many(frame))
    assert len(panels) == 3
    assert not [item for panel in panels for item in panel.findobj() if item.get_rasterized()]
    assert all(_mesh(panel) for panel in panels)


def test_a_cell_is_around_its_point():
    axis = np.array([-1.0, 0.0, 0.5, 1.0])
    frame = pd.DataFrame(
        [("a", p, n, p + n + 2) for p in axis for n in axis], columns=["objective", "s_pos", "s_neg", "w_neg"]
    )
    assert tuple(_mesh(triplet_field.draw(frame)).get_extent()) == (-1.5, 1.25, -1.5, 1.25)
