"""Does a training keep its findings under another storage: rows in another order, rotated axes?"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lossscope
from lossscope.doctor.examination.examine import examine_run
from lossscope.doctor.examination.options import Options
from tests.planted import (
    batch_ceiling,
    complete_collapse,
    cone,
    dead_tower,
    dimensional_collapse,
    duplicates,
    hubness,
    misaligned_pairs,
    modality_gap,
    no_learning,
    non_finite,
    not_normalised,
    shuffled_share,
    temperature_too_high,
    temperature_too_low,
)
from tests.planted.base import SIZES, Case, Plant, dump, healthy_dump

Arrays = Mapping[str, Any]
PLANTS = (
    healthy_dump, batch_ceiling.converged, complete_collapse.slightly, complete_collapse.with_objective, cone.cone,
    dead_tower.constant, dead_tower.zero, dimensional_collapse.few, duplicates.embeddings, hubness.hubs,
    misaligned_pairs.shuffled, modality_gap.gap, no_learning.vectors, non_finite.nan_rows,
    not_normalised.a_share, shuffled_share.half, temperature_too_high.one, temperature_too_low.thousandth,
)  # fmt: skip


def _name(plant: Plant) -> str:
    return f"{plant.__module__.rpartition('.')[2]}.{plant.__name__}"


NAMES = [_name(plant) for plant in PLANTS]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, dict[str, Any], tuple[str, ...]]]:
    """Return each case, its arrays, and the ids that the doctor finds in it."""
    cases = {}
    for plant in PLANTS:
        case = plant(SIZES[0], tmp_path_factory.mktemp("case"))
        arrays = dict(np.load(str(case.sources[0])))
        cases[_name(plant)] = case, arrays, found(arrays, case)
    return cases


def found(arrays: Arrays, case: Case) -> tuple[str, ...]:
    """Return the ids that the doctor finds in a dump's arrays; a constant side's symptoms come from its rounding."""
    with tempfile.TemporaryDirectory() as folder:
        ids: tuple[str, ...] = lossscope.doctor(dump(Path(folder), **arrays), cache=False, **case.options).ids
    return ids


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter(name: str, stored: Any) -> None:
    case, arrays, ids = stored[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        first, second = rng.permutation(len(arrays["images"])), rng.permutation(len(arrays["captions"]))
        owner = np.argsort(first)[arrays["caption_image"]][second]
        moved = {"images": arrays["images"][first], "captions": arrays["captions"][second], "caption_image": owner}
        assert found(moved, case) == ids, seed


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_can_be_turned_by_one_rotation(name: str, stored: Any) -> None:
    case, arrays, ids = stored[name]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(SIZES[0].d,) * 2))[0]
    sides = {side: (arrays[side].astype(np.float64) @ turn).astype(np.float32) for side in ("images", "captions")}
    assert found({**arrays, **sides}, case) == ids


@pytest.mark.parametrize("name", NAMES)
def test_whole_pairs_can_be_moved_and_axes_reflected(name: str, stored: Any) -> None:
    case, arrays, ids = stored[name]

    @settings(max_examples=2)
    @given(st.permutations(range(12)), st.booleans())
    def check(order: list[int], reflected: bool) -> None:
        blocks = np.array_split(np.arange(len(arrays["images"])), 12)
        rows = np.concatenate([blocks[index] for index in order])
        signs = np.where(np.arange(SIZES[0].d) % 2 & reflected, -1, 1).astype(np.float32)
        sides = {side: signs * arrays[side][rows] for side in ("images", "captions")}
        assert found({**sides, "caption_image": np.arange(len(rows))}, case) == ids

    check()


@pytest.mark.parametrize("name", NAMES)
def test_rows_can_be_of_any_length_that_float64_holds(name: str, stored: Any) -> None:
    """Rows of 1e160 ended in a traceback; the doctor called rows of 1e-310 zeros."""
    case, arrays, _ = stored[name]
    n, rng = len(arrays["images"]), np.random.default_rng(0)
    few = np.where(rng.random((n, 1)) < 0.1, rng.integers(-990, 990, (n, 1)), 2)

    def ids_at(exponent: Any) -> tuple[str, ...]:
        sides = {side: np.ldexp(arrays[side].astype(np.float64), exponent) for side in ("images", "captions")}
        with warnings.catch_warnings(action="error"):
            found: tuple[str, ...] = lossscope.doctor({**arrays, **sides}, **case.options).ids
        return found

    for usual, extremes in ((2, (532, 996, few)), (-2, (-1000,))):
        assert {ids_at(exponent) for exponent in extremes} == {ids_at(usual)}


def test_a_run_says_the_same_wherever_it_stands(tiny_run: Path, tmp_path: Path) -> None:
    """A study writes the findings beside a run: their bytes must not depend on the folder."""
    here = examine_run(tiny_run, "a-run", Options.of(cache=False)).document()
    (tmp_path / "far" / "away").mkdir(parents=True)
    copied = Path(shutil.copytree(tiny_run, tmp_path / "far" / "away" / "copy"))
    assert examine_run(copied, "a-run", Options.of(cache=False)).document() == here
    assert here["source"] == "a-run" and str(tiny_run) not in str(here)


def test_a_run_is_examined_again_with_the_same_result(tiny_run: Path) -> None:
    first, second = (lossscope.doctor(str(tiny_run), cache=False).document() for _ in range(2))
    assert first == second
