"""Which order restores misaligned pairs when some rows are left out?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.doctor.examination.examine import examine
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.parts.restoration import Order, Restoration
from tests.lengths import thorough
from tests.planted.base import SIZES, Size, aligned, dump, pairs, unit
from tests.planted.misaligned_pairs import by_id, far, interleaved, shifted, shuffled


def _reversed(size: Size, folder: Path) -> str:
    first, second = aligned(size)
    return pairs(folder, first, second[::-1])


def _path(plant: Any, size: Size, folder: Path) -> str:
    case = plant(size, folder)
    return case if isinstance(case, str) else str(case.sources[0])


def _best(path: str) -> Order:
    best = open_patient(path, Options.of(cache=False)).part(Restoration).best
    assert best is not None
    return best


def _damaged(path: str, damage: str, folder: Path) -> str:
    """Write a dump with a row left out; return its path."""
    arrays = dict(np.load(path))
    if damage == "an image without caption":
        arrays["caption_image"] = arrays["caption_image"].copy()
        arrays["caption_image"][7] = 6
    else:
        arrays[damage][7] = np.nan
    return dump(folder, "damaged.npz", **arrays)


@pytest.mark.parametrize("damage", ["images", "captions"])
@pytest.mark.parametrize("plant", [shifted, far, by_id, _reversed, interleaved])
def test_a_row_with_nan_leaves_the_order_that_restores_the_pairs(plant: Any, damage: str, tmp_path: Path) -> None:
    whole = _path(plant, SIZES[0], tmp_path)
    without, damaged = _best(whole), _best(_damaged(whole, damage, tmp_path))
    assert damaged.what == without.what
    assert damaged.share_above == pytest.approx(without.share_above, abs=0.05)


@pytest.mark.parametrize("plant", [by_id, _reversed])
def test_an_image_without_caption_leaves_the_order_that_restores_the_pairs(plant: Any, tmp_path: Path) -> None:
    whole = _path(plant, SIZES[0], tmp_path)
    assert _best(_damaged(whole, "an image without caption", tmp_path)).share_above < 0.05


def test_orders_by_id_are_tried_of_more_rows_than_a_sample_has(tmp_path: Path) -> None:
    assert "sorted by id as text" in _best(_path(by_id, SIZES[-1], tmp_path)).what


@pytest.mark.parametrize("n", [600, *thorough(20_000)])
@pytest.mark.parametrize("side", ["images", "captions"])
def test_a_row_with_nan_hides_no_shuffled_pairs(side: str, n: int, tmp_path: Path) -> None:
    """Without an order that restores the pairs, structure between the sides proves the shuffle."""
    path = _damaged(_path(shuffled, Size(n, 64), tmp_path), side, tmp_path)
    (found,) = examine(path, cache=False).examinations[0].findings
    assert found.id == "non-finite" and "misaligned-pairs" in found.explains


@pytest.mark.parametrize("size", [SIZES[0], *thorough(*SIZES[1:4])], ids=lambda size: f"n{size.n}d{size.d}")
def test_shifted_pairs_are_found_where_neighbours_are_alike(size: Size, tmp_path: Path) -> None:
    """Passages of one document follow each other, so that a shifted pair beats guessing."""
    first, second = aligned(size, noise=0.5)
    document = np.arange(size.n) // 4
    shared = 0.8 * aligned(Size(size.n, size.d, seed=9))[0][document]
    sides = unit(first + shared), unit(second + shared)
    found = examine(pairs(tmp_path, sides[0], np.roll(sides[1], 1, axis=0)), cache=False)
    assert found.ids[:1] == ("misaligned-pairs",), found
    assert "shifted by 1 row" in found.findings[0].why
    healthy = examine(pairs(tmp_path, *sides, name="healthy.npz"), cache=False)
    assert not any(finding.is_alarm for finding in healthy.findings), healthy
