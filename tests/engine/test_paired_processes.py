"""Do many processes give the differences of two sides, and the intervals, that one process gives?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.distributed import process_group
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.sources.base import load
from tests.farm import run_ranks

from .test_sweep_processes import SIZES, SWEEPS, dump, output_of

NAMES = ("stacks", "stacks of images", "tiles", "tiles of images", "tiles and panels")
TEXTS = ["source", "b_source", "objective", "b_objective", "direction", "probe", "statistic", "method"]


def write_sides(folder: Path) -> list[Path]:
    """Write one split under two models."""
    a = dump(folder / "a.npz", 100)
    arrays = dict(np.load(a))
    moved = arrays["captions"] + 0.05 * np.random.default_rng(1).normal(size=arrays["captions"].shape)
    arrays["captions"] = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
    np.savez(folder / "b.npz", **arrays)
    return [a, folder / "b.npz"]


def run_sweeps(folder: Path) -> None:
    """Write the differences of each sweep."""
    here = process_group()
    a, b = (load(folder / f"{side}.npz", cache=False) for side in "ab")
    for name in NAMES:
        sweep = SWEEPS[name]
        rows = PairedSweep(sweep, sweep).run(a, b, processes=here).rows
        if here.main:
            rows.to_pickle(folder / f"{name} {here.size}.pkl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return the function that gives the folder of all differences of a number of processes."""
    folder = tmp_path_factory.mktemp("differences")
    write_sides(folder)

    @cache
    def run(size: int) -> Path:
        run_ranks(run_sweeps, size, folder)
        return folder

    return run


@pytest.mark.thorough
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_many_processes_give_the_differences_of_one(name: str, size: int, folder: Callable[[int], Path]) -> None:
    single, many = (pd.read_pickle(folder(n) / f"{name} {n}.pkl") for n in (1, size))
    pd.testing.assert_frame_equal(many[TEXTS], single[TEXTS])
    numbers = single.select_dtypes(float).columns
    scale = single[["mean", "b_mean"]].abs().max(axis=1).to_numpy()[:, None]
    gap = (many[numbers] - single[numbers]).abs().to_numpy()
    assert (np.isnan(gap) | (gap <= 1e-5 * scale + 1e-9)).all()
    assert single["low"].notna().mean() > 0.25


@pytest.mark.parametrize("size", SIZES)
def test_the_command_prints_the_same_as_in_one_process(size: int, tmp_path: Path) -> None:
    words = ["diff", *map(str, write_sides(tmp_path)), "--objective", "triplet"]
    words += ["--batch-size", "64", "--format", "json", "--device", "cpu"]
    alone = output_of(*words)
    assert '"queries": [' in alone
    assert output_of(*words, ranks=size) == alone
