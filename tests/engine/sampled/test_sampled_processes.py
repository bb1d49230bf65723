"""Do many processes share the shards of a sample and give the numbers of one process, bit for bit?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.distributed import process_group
from lossscope.engine.blocks import strips
from lossscope.engine.sweep import Sweep
from lossscope.io.frames import Frame
from lossscope.sources.base import load
from tests.farm import run_ranks

SIZES = (1, 2, 3)
SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "triplet", "triplet_sh")
SWEEPS = {
    "shards": Sweep(SINGLE, ("cocos", "recall", "similarity"), batch_size=None, queries=40),
    "all entries": Sweep(("ntxent",), ("cocos:eps=0",), batch_size=None, queries=40),
    "images": Sweep(("smoothap",), ("cocos", "cocos:eps=0"), batch_size=None, queries=40),
    "panels": Sweep(("ntxent",), ("cocos", "tangent"), batch_size=None, queries=40),
    "precision": Sweep(("ntxent:tau=0.05",), ("cocos",), batch_size=None, precision_of="C_neg=3%"),
}


def write_shards(folder: Path) -> None:
    random = np.random.default_rng(0)
    images = random.normal(size=(700, 8))
    captions = np.repeat(images, 2, 0) + 0.6 * random.normal(size=(1400, 8))
    folder.mkdir()
    for name, rows in (("images", images), ("captions", captions)):
        for number, part in enumerate(np.array_split(rows.astype(np.float32), 5)):
            np.save(folder / f"{name}-{number}.npy", part)


def run_sweeps(folder: Path) -> None:
    """Run each sweep into a frame of its own."""
    here, embedded = process_group(), load(folder / "shards", sharded=True)
    strips.STRIP = 120  # candidates: several strips a shard
    for name, sweep in SWEEPS.items():
        frame = Frame.open(folder / f"{name} {here.size}", {}) if here.main else None
        result = sweep.run(embedded, frame, processes=here)
        if here.main:
            result.summary.to_parquet(folder / f"{name} {here.size}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("samples")
    write_shards(where / "shards")
    for size in SIZES:
        run_ranks(run_sweeps, size, where)
    return where


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("name", SWEEPS)
def test_any_number_of_processes_gives_the_same_bits(name: str, size: int, folder: Path) -> None:
    single, several = (pd.read_parquet(folder / f"{name} {number}.parquet") for number in (1, size))
    assert len(single) and single["low"].notna().any()
    pd.testing.assert_frame_equal(several, single, check_exact=True)
