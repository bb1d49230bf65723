"""Do samples of queries from a folder of shards have the numbers of the arrays in memory, from disk and from a URL?"""

from __future__ import annotations

import io
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest

from lossscope.engine.blocks import strips
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io import row_shards
from lossscope.sources.base import load
from tests.each import each

IMAGES, CAPTIONS, WIDTH = 90, 3, 10
TILES = ("cocos:unit=paper", "weight_mass:unit=paper", "similarity", "recall")
OBJECTIVES = ("ntxent:tau=0.05", "triplet", "triplet_sh")
COUNTS = ("C_q", "C_q_all", "C_B", "C_0", "C_neg", "R@1", "medr", "ties", "skipped")


def arrays(scale: float = 1.0) -> dict[str, Any]:
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    images = random.normal(size=(IMAGES, WIDTH))
    captions = images[owner] + 0.7 * random.normal(size=(len(owner), WIDTH))
    sides = {name: x / np.linalg.norm(x, axis=1)[:, None] for name, x in (("images", images), ("captions", captions))}
    return {name: scale * x.astype(np.float32) for name, x in sides.items()} | {"caption_image": owner}


def write_shards(folder: Path, values: dict[str, Any], cuts: int = 4) -> Path:
    folder.mkdir()
    for name in ("images", "captions"):
        for number, part in enumerate(np.array_split(values[name], cuts)):
            np.save(folder / f"{name}-{number}.npy", part)
    pd.DataFrame({"caption_image": values["caption_image"]}).to_parquet(folder / "metadata.parquet")
    return folder


def copy_to_memory(folder: Path) -> str:
    url = f"memory://{folder.parent.name}-{folder.name}"
    for file in folder.iterdir():
        with fsspec.open(f"{url}/{file.name}", "wb") as target:
            shutil.copyfileobj(io.BytesIO(file.read_bytes()), target)
    return url


def assert_near(actual: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Assert equal counts, and other numbers to 1e-5."""
    exact = expected["statistic"].isin(COUNTS)
    for column in ("mean", "low", "high"):
        assert actual.loc[exact, column].equals(expected.loc[exact, column])
        assert actual[column].to_numpy() == pytest.approx(expected[column].to_numpy(), rel=1e-5, abs=1e-6, nan_ok=True)


@each("kind, sampling, queries, scale", [
    ("disk", "pairs", 25, 3.0), ("memory", "images", 25, 1.0), ("disk", "images", 1000, 1.0),
    ("memory", "pairs", 1000, 3.0), ("disk", "images", 25, 3.0),
])  # fmt: skip
def test_shards_are_the_arrays_in_memory(kind: str, sampling: Any, queries: int, scale: float, tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", arrays(scale))
    np.savez(tmp_path / "dump.npz", **arrays(scale))
    objectives = OBJECTIVES if sampling == "pairs" else ("smoothap", "supcon")
    sweep = Sweep(objectives, TILES, sampling=sampling, batch_size=None, queries=queries)
    whole = sweep.run(load(tmp_path / "dump.npz")).summary
    embedded = load(folder if kind == "disk" else copy_to_memory(folder), sharded=True)
    assert embedded.shards is not None and embedded.images is None
    assert_near(sweep.run(embedded).summary, whole)


def test_probes_of_whole_rows_read_shards_into_memory(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", arrays())
    sweep = Sweep(("ntxent",), ("tangent", "contributors", "cocos"), batch_size=None, queries=20)
    assert_near(sweep.run(load(folder, sharded=True)).summary, sweep.run(load(folder)).summary)


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_block_is_read_once_beside_the_rows_of_the_sample(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads read in any order, each a strip of its own."""
    folder, read = write_shards(tmp_path / "shards", arrays()), []
    monkeypatch.setattr(row_shards, "BLOCK_BYTES", 600)
    blocks = row_shards.RowShards.blocks

    def watching(self: row_shards.RowShards, start: int, stop: int) -> Any:
        for first, block in blocks(self, start, stop):
            read.append((len(self), first, first + len(block)))
            yield first, block

    monkeypatch.setattr(row_shards.RowShards, "blocks", watching)
    monkeypatch.setattr(strips, "STRIP", 40)
    Sweep(("ntxent:tau=0.05",), ("cocos",), batch_size=None, queries=20).run(load(folder, sharded=True), jobs=jobs)
    for size in (IMAGES, IMAGES * CAPTIONS):
        of_size = [(start, stop) for n, start, stop in read if n == size]
        of_size = of_size if jobs == 1 else sorted(of_size)
        assert [start for start, _ in of_size] == [0, *(stop for _, stop in of_size[:-1])] and of_size[-1][1] == size
        assert max(stop - start for start, stop in of_size) <= 600 // (4 * WIDTH)


def test_memory_is_that_of_the_sample_and_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side has 20 MB, and numpy never holds 4 MB of it; the ordinary reader held a whole side of 40 MB."""
    n, folder = 80_000, tmp_path / "shards"
    folder.mkdir()
    values = np.random.default_rng(0).normal(size=(n, 128)).astype(np.float16)
    for name in ("images", "captions"):
        np.save(folder / f"{name}.npy", values)
    del values
    monkeypatch.setattr(row_shards, "BLOCK_BYTES", 1 << 19)
    embedded = load(folder, sharded=True)
    tracemalloc.start()
    Sweep(("ntxent:tau=0.05",), ("cocos",), sampling="pairs", batch_size=None, queries=30).run(embedded)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * n + (4 << 20)  # row numbers of both sides, and 4 MB


def test_shards_in_another_order_than_the_pairs_are_refused(tmp_path: Path) -> None:
    values = arrays()
    values["caption_image"] = values["caption_image"][::-1].copy()
    folder = write_shards(tmp_path / "shards", values)
    with pytest.raises(
        InputError,
        match=r"images of .* must be in the order of the pairs.*; they are not\. Sort the captions by image, so",
    ):
        Sweep(("ntxent",), batch_size=None, queries=20).run(load(folder, sharded=True))


@each("row", [0, 50])
def test_a_row_that_is_not_finite_is_an_error(row: int, tmp_path: Path) -> None:
    values = arrays()
    values["captions"][row, 3] = np.nan
    folder = write_shards(tmp_path / "shards", values)
    with pytest.raises(InputError, match=r"captions of .* must be finite"):
        Sweep(("ntxent",), batch_size=None, queries=20).run(load(folder, sharded=True))


def test_a_url_of_no_shards_and_one_that_would_be_read_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"memory://nothing must be a folder of .npy shards"):
        load("memory://nothing", sharded=True)
    url = copy_to_memory(write_shards(tmp_path / "shards", arrays()))
    with pytest.raises(InputError, match=r"must be a path here; of a URL, sweeps over a sample of queries"):
        load(url)
    fsspec.filesystem("memory").rm(f"/{url.removeprefix('memory://')}/captions-0.npy")
    for number in (1, 2, 3):
        fsspec.filesystem("memory").rm(f"/{url.removeprefix('memory://')}/captions-{number}.npy")
    with pytest.raises(InputError, match=r"there is no captions\*\.npy"):
        load(url, sharded=True)


def test_fractional_rows_of_images_are_refused(tmp_path: Path) -> None:
    values = arrays()
    folder = write_shards(tmp_path / "shards", values)
    pd.DataFrame({"caption_image": values["caption_image"] + 0.4}).to_parquet(folder / "metadata.parquet")
    with pytest.raises(InputError, match=r"caption_image of .* must be 270 integers; got \(270,\) of float64"):
        load(folder, sharded=True)


def test_other_sides_are_refused_and_columns_that_are_not_read_are_noticed(tmp_path: Path) -> None:
    values = arrays()
    folder = write_shards(tmp_path / "shards", values)
    for location in (folder, copy_to_memory(folder)):
        with pytest.raises(InputError, match="--sides must be image/caption of a folder of shards"):
            load(location, sharded=True, sides="user/item")
    assert len(load(folder, sharded=True, sides="image/caption").notices) == 1
    table = {"caption_image": values["caption_image"], "caption": "a dog", "image_id": 1}
    pd.DataFrame(table).to_parquet(folder / "metadata.parquet")
    assert load(folder, sharded=True).notices[1] == (
        f"metadata.parquet of {folder} is read for caption_image alone; not for caption, image_id"
    )


@each("value, message", [(np.nan, "must be finite; row 59 is not"), (0, "zero; row 59 is")])
def test_a_wrong_row_is_named_by_its_row_in_the_set(value: float, message: str, tmp_path: Path) -> None:
    """Not by its position in the sample, nor in its block."""
    values = arrays()
    values["images"][59] = value
    shards = load(write_shards(tmp_path / "shards", values), sharded=True).shards
    assert shards is not None
    for read in (lambda: shards.i2t.take(np.array([70, 59, 3])), lambda: list(shards.i2t.blocks(46, 68))):
        with pytest.raises(InputError, match=message):
            read()


@each(
    "probes, options",
    [(("cocos", "recall"), {"engine": "tiled"}), (("cocos", "uniformity", "modality_gap"), {}), (TILES, {})],
)
def test_a_full_sweep_reads_shards_into_memory(probes: tuple[str, ...], options: Any, tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", arrays())
    sweep = Sweep(("triplet",), probes, batch_size=None, **options)
    whole, shards = (sweep.run(load(folder, sharded=sharded)).summary for sharded in (False, True))
    pd.testing.assert_frame_equal(shards, whole)


def test_a_chained_url_of_a_folder_reads_its_shards(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", arrays())
    sweep = Sweep(("triplet",), ("recall",), batch_size=None, queries=20)
    expected = sweep.run(load(folder, sharded=True)).summary
    for url in (f"simplecache::file://{folder}", Path(f"simplecache::file://{folder}")):
        assert_near(sweep.run(load(url, sharded=True)).summary, expected)
