"""Are HOG and colour features of cells deterministic, normalised, and local?"""

from __future__ import annotations

import numpy as np
import pytest

from lossscope.datasets.features.base import Backbone
from lossscope.datasets.features.hog_grid import HogGrid
from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 3, 70, 90), dtype=np.uint8)


def test_every_cell_is_a_row_of_136_numbers() -> None:
    backbone = build("features", "hog-grid:rows=2,columns=3")
    assert isinstance(backbone, Backbone)
    rows = backbone.open("cpu")(PIXELS)
    assert (rows.shape, rows.dtype) == ((3, 6, 136), np.float32)
    assert np.isfinite(rows).all()
    assert np.array_equal(rows, backbone.open("cpu")(PIXELS))
    assert np.array_equal(rows[1:2], backbone.open("cpu")(PIXELS[1:2]))


def test_parts_are_of_unit_length() -> None:
    row = HogGrid().open("cpu")(PIXELS[:1])[0]
    for first, last in ((0, 36), (36, 72), (72, 96), (96, 120), (120, 132)):
        assert np.linalg.norm(row[:, first:last], axis=1) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(row[:, 132:], axis=1) == pytest.approx(0.5, abs=1e-5)


def test_a_plain_picture_has_no_gradients() -> None:
    row = HogGrid(2, 2).open("cpu")(np.full((1, 3, 64, 64), 90, np.uint8))[0]
    assert not row[:, :72].any()
    assert np.isfinite(row).all()
    assert np.array_equal(row[0, :132], row[3, :132])
    assert not np.array_equal(row[0, 132:], row[3, 132:])


def test_a_cell_depends_on_itself_and_its_neighbours_alone() -> None:
    plain = np.full((1, 3, 96, 96), 90, np.uint8)
    marked = plain.copy()
    marked[..., :16, :16] = np.random.default_rng(1).integers(0, 256, (3, 16, 16), dtype=np.uint8)
    before, after = (HogGrid(6, 6).open("cpu")(pixels)[0] for pixels in (plain, marked))
    changed = np.flatnonzero(np.abs(before - after).max(axis=1) > 1e-6)
    assert 0 in changed
    assert set(changed) <= {0, 1, 6, 7}
    in_colours = np.flatnonzero(np.abs(before - after)[:, 72:96].max(axis=1) > 1e-6)
    assert in_colours.tolist() == [0]


def test_the_histogram_is_of_lab_bins() -> None:
    red, blue = (np.zeros((1, 3, 32, 32), np.uint8) for _ in range(2))
    red[:, 0], blue[:, 2] = 255, 255
    rows = [HogGrid(1, 1).open("cpu")(pixels)[0, 0, 72:96] for pixels in (red, blue)]
    assert [int((row > 0).sum()) for row in rows] == [3, 3]  # one bin of L, a and b each
    assert not np.array_equal(rows[0], rows[1])


@each("options", ["rows=0", "columns=0", "cell=15", "cell=17"])
def test_options_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError, match="hog-grid:rows and columns must be at least 1, cell even"):
        build("features", f"hog-grid:{options}")
