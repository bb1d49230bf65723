"""Do the contours of a cloud hold the share of the queries that the legend states, whatever its shape?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet
from matplotlib.path import Path

from lossscope.engine.weight_fields import weight_field
from lossscope.plots import overlay, style, triplet_field
from tests.each import each


def _frame(x, y, source="a.pt", epoch=np.nan, size=128.0, split="train"):
    columns = {"source": source, "split": split, "epoch": epoch, "s_pos": x, "s_neg": y, "batch_size": size}
    return pd.DataFrame({**columns, "direction": np.where(np.arange(len(x)) % 2, "t2i", "i2t")})


def _normal(number=4000, at=(0.6, 0.4), seed=0, **more):
    x, y = np.random.default_rng(seed).normal(at, (0.08, 0.05), (number, 2)).T
    return _frame(x, y, **more)


def _contours(ax):
    return [item for item in ax.collections if isinstance(item, ContourSet)]


def _inside(paths, frame):
    """Return the share of the points within each path, without its holes."""
    points = frame[["s_pos", "s_neg"]].to_numpy()
    shares = []
    for path in paths:
        rings = path.to_polygons()
        within = sum(Path(ring).contains_points(points).astype(int) for ring in rings)
        shares.append(float((within % 2 == 1).mean()))
    return shares


@each("number", [200, 4000])
def test_lines_hold_their_share_of_the_queries(number):
    frame = _normal(number)
    (lines,) = _contours(overlay.draw(frame))
    outer, inner = _inside(lines.get_paths(), frame)
    assert (outer, inner) == (pytest.approx(0.9, abs=0.03), pytest.approx(0.5, abs=0.03))


def test_two_clouds_of_one_source_are_two_rings():
    frame = pd.concat([_normal(2000, (0.2, 0.1)), _normal(2000, (0.8, 0.5), seed=1)])
    (lines,) = _contours(overlay.draw(frame))
    assert _inside(lines.get_paths(), frame) == [pytest.approx(0.9, abs=0.03), pytest.approx(0.5, abs=0.03)]
    assert len(lines.get_paths()[0].to_polygons()) >= 2


@each("slope", [0.0, 0.7, np.inf])
def test_points_on_a_line_have_a_contour_around_it(slope):
    """Their covariance is singular: a kernel density raises an error or is empty."""
    t = np.linspace(0.1, 0.9, 400)
    frame = _frame(np.full(400, 0.3), t) if slope == np.inf else _frame(t, 0.2 + slope * (t - 0.5))
    (lines,) = _contours(overlay.draw(frame))
    outer = lines.get_paths()[0].vertices
    assert np.ptp(outer, axis=0).max() > 0.6
    assert _inside(lines.get_paths()[:1], frame)[0] == pytest.approx(0.9, abs=0.08)


def test_points_in_one_place_have_a_small_contour_around_it():
    (lines,) = _contours(overlay.draw(_frame(np.full(100, 0.5), np.full(100, 0.5))))
    outer = lines.get_paths()[0].vertices
    assert np.ptp(outer, axis=0).max() < 0.05
    np.testing.assert_allclose(outer.mean(axis=0), 0.5, atol=0.01)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), dx=st.floats(-0.3, 0.3), dy=st.floats(-0.3, 0.3))
def test_a_cloud_moves_with_its_points(seed, dx, dy):
    frame = _normal(300, seed=seed)
    moved = frame.assign(s_pos=frame["s_pos"] + dx, s_neg=frame["s_neg"] + dy)
    here, there = (_contours(overlay.draw(rows))[0].get_paths()[0].vertices for rows in (frame, moved))
    np.testing.assert_allclose(there.min(0), here.min(0) + np.array([dx, dy]), atol=0.03)
    np.testing.assert_allclose(there.max(0), here.max(0) + np.array([dx, dy]), atol=0.03)


def test_few_queries_are_dots():
    frame = _normal(overlay.FEW - 1)
    ax = overlay.draw(frame)
    assert _contours(ax) == []
    dots = next(item for item in ax.collections if isinstance(item, PathCollection))
    np.testing.assert_allclose(dots.get_offsets(), frame[["s_pos", "s_neg"]])


def test_the_cross_is_at_the_medians():
    frame = _normal(501)
    mark = [item for item in overlay.draw(frame).collections if isinstance(item, PathCollection)][-1]
    np.testing.assert_allclose(mark.get_offsets(), [frame[["s_pos", "s_neg"]].median()])


def test_each_source_has_a_colour_and_the_field_keeps_its_axes():
    field = weight_field("goal:triplet=nca", points=21)
    fig = triplet_field.draw_many(field, pale=True)
    (ax,) = triplet_field.panels(fig)
    before = (ax.get_xlim(), ax.get_ylim(), ax.get_ylabel(), len(_contours(ax)))
    overlay.draw(pd.concat([_normal(200), _normal(200, source="b.pt")]), ax)
    assert (ax.get_xlim(), ax.get_ylim(), ax.get_ylabel(), len(_contours(ax)) - 2) == before
    first, second = _contours(ax)[-2:]
    assert tuple(first.get_edgecolor()[0]) != tuple(second.get_edgecolor()[0])


def test_a_path_joins_the_medians_in_the_order_of_the_epochs():
    parts = [_normal(200, (0.2 + 0.1 * k, 0.2 + 0.05 * k), epoch=float(k), seed=k) for k in range(1, 6)]
    ax = overlay.draw_path(pd.concat(parts[::-1]))
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xydata(), [part[["s_pos", "s_neg"]].median() for part in parts])
    assert len(_contours(ax)) == 5
    start, end = [item for item in ax.collections if isinstance(item, PathCollection)]
    np.testing.assert_allclose(start.get_offsets()[0], line.get_xydata()[0])
    np.testing.assert_allclose(end.get_offsets()[0], line.get_xydata()[-1])
    assert len(start.get_paths()[0]) != len(end.get_paths()[0])  # a circle and a square


def test_every_epoch_of_a_long_path_has_a_contour_and_some_are_in_the_legend():
    parts = [_normal(60, (0.01 * k, 0.2), epoch=float(k)) for k in range(1, 31)]
    ax = overlay.draw_path(pd.concat(parts))
    assert len(_contours(ax)) == len(ax.lines[0].get_xdata()) == 30
    overlay.legend(ax.figure, pd.concat(parts))
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert (len(names), names[0], names[-1]) == (overlay.NAMED, "epoch 1", "epoch 30")
    assert "epochs 1 to 30" in ax.figure.legends[0].get_title().get_text().replace("\n", " ")


@pytest.mark.usefixtures("fitted")
@each("context", [style.paper, style.screen])
def test_the_legend_states_source_split_and_batch_and_is_inside_the_picture(context):
    with context():
        frame = pd.concat([_normal(200), _normal(300, source="runs/" + "long" * 12, size=np.nan, split=None)])
        fig = triplet_field.draw_many(weight_field("goal:triplet=nca", points=21), pale=True)
        overlay.draw(frame, triplet_field.panels(fig)[0])
        overlay.legend(fig, frame)
        fig.draw_without_rendering()
        legend = " ".join(text.get_text() for text in fig.legends[0].get_texts()).replace("\n", " ")
        assert "a, train: 200 queries, both directions, hardest negatives of batches of 128" in legend
        assert "300 queries, both directions, hardest negatives of the whole split" in legend
        box = fig.legends[0].get_window_extent()
        assert min(box.x0, box.y0) >= 0 and box.x1 <= fig.bbox.x1
        assert fig.get_tightbbox().y1 <= fig.get_figheight() + 0.02


def test_the_legend_of_a_path_names_epochs():
    frame = pd.concat([_normal(60, epoch=float(k)) for k in (1, 2, 3)])
    fig = overlay.draw_path(frame).figure
    overlay.legend(fig, frame)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["epoch 1", "epoch 2", "epoch 3"]
    assert style.headline(fig) == "How the queries of a model move over the field of weights"
    assert "60 queries" in fig.legends[0].get_title().get_text()


def test_alt_states_the_medians():
    frame = _frame([0.5, 0.5, 0.7], [0.6, 0.2, 0.2], epoch=2.0)
    assert "a after epoch 2: median positive similarity 0.50, median hardest negative 0.20, 33% of 3" in overlay.alt(
        frame
    )
    assert "after" not in overlay.alt(frame.assign(epoch=np.nan))
