"""Are rows of shards the same from disk and from a URL, block by block, and a file with a false header refused?"""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.io import row_shards
from lossscope.io.locations import local_path, url_of
from lossscope.io.row_shards import RowShards
from tests.each import each

SIZES = (3, 0, 7, 1)


def all_rows() -> Any:
    return np.random.default_rng(0).normal(size=(sum(SIZES), 4)).astype(np.float16)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def write(rows: Any, where: str) -> list[str]:
    """Write shards below a folder or URL; return their locations."""
    starts = np.cumsum([0, *SIZES])
    locations = [f"{where}/images-{number}.npy" for number in range(len(SIZES))]
    for location, start, size in zip(locations, starts, SIZES, strict=False):
        with fsspec.open(location, "wb") as file:
            file.write(npy(rows[start : start + size]))
    return locations


@each("kind", ["disk", "memory", "file"], "block", [1, 16, 1 << 26])
def test_blocks_are_all_rows_in_order(kind: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, name = all_rows(), f"{tmp_path.parent.name}-{tmp_path.name}"
    where = {"disk": str(tmp_path), "memory": f"memory://{name}", "file": f"file://{tmp_path}"}[kind]
    shards = RowShards.open(write(rows, where))
    monkeypatch.setattr(row_shards, "BLOCK_BYTES", block)
    assert (len(shards), shards.width) == rows.shape
    for most in (2, 100):
        read = [found for part in shards.parts(most) for found in shards.blocks(*part)]
        assert [first for first, _ in read] == np.cumsum([0, *(len(part) for _, part in read)])[:-1].tolist()
        assert np.array_equal(np.concatenate([part for _, part in read]), rows)
        assert max(len(part) for _, part in read) <= most


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, sum(SIZES) - 1)), st.sampled_from([0, 1 << 16]))
def test_some_rows(drawn: set[int], gap: int) -> None:
    rows = np.random.default_rng(1).normal(size=(sum(SIZES), 4))
    shards = RowShards.open(write(rows, "memory://some"))
    wanted = np.array(sorted(drawn), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_shards, "_GAP", gap)
        assert np.array_equal(shards.take(wanted), rows[wanted])


def test_a_file_is_never_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 MB pass in blocks of 64 kB; the reader picks rows far apart."""
    rows = np.lib.format.open_memmap(tmp_path / "images.npy", mode="w+", dtype=np.float32, shape=(1 << 17, 64))
    rows[:] = 1
    rows.flush()
    del rows
    monkeypatch.setattr(row_shards, "BLOCK_BYTES", 1 << 16)
    tracemalloc.start()
    shards = RowShards.open([str(tmp_path / "images.npy")])
    total = sum(
        float(block.sum(dtype=np.float64)) for part in shards.parts(1 << 20) for _, block in shards.blocks(*part)
    )
    picked = shards.take(np.arange(0, 1 << 17, 997))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 64 << 17 and picked.shape == (132, 64)
    assert peak < 1 << 20


@each(
    "where",
    ["disk", "memory"],
    "content, message",
    [
        (npy(np.zeros((2, 3)))[:-1], "must be a whole .npy file of float64"),
        (npy(np.zeros((2, 3))) + b"x", "must be a whole .npy file of float64"),
        (npy(np.array([None, 1])), "not pickled objects"),
        (b"", "must be a whole .npy file"),
        (
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 64), }",
            "whole .npy file",
        ),
        (npy(np.zeros(5)), "must be rows of floats"),
        (npy(np.zeros((5, 2), np.int64)), "must be rows of floats"),
        (npy(np.asfortranarray(np.zeros((5, 2)))), "columns first"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(where: str, content: bytes, message: str, tmp_path: Path) -> None:
    location = f"{tmp_path}/bad.npy" if where == "disk" else f"memory://{tmp_path.name}/bad.npy"
    with fsspec.open(location, "wb") as file:
        file.write(content)
    with pytest.raises(InputError, match=message):
        RowShards.open([location])


def test_shards_of_two_widths_are_refused(tmp_path: Path) -> None:
    for name, width in (("a", 3), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", np.zeros((2, width)))
    with pytest.raises(InputError, match=r"shards must have one width; .*b\.npy holds \(2, 4\), and .*a\.npy \(2, 3\)"):
        RowShards.open([str(tmp_path / "a.npy"), str(tmp_path / "b.npy")])


@each("scheme", ["", "memory://"])
def test_a_file_that_is_cut_off_meanwhile_is_an_error(scheme: str, tmp_path: Path) -> None:
    where = f"{scheme}{tmp_path.name}" if scheme else str(tmp_path)
    shards = RowShards.open(write(np.zeros((sum(SIZES), 4)), where))
    with fsspec.open(f"{where}/images-2.npy", "wb") as file:
        file.write(npy(np.zeros((7, 4)))[:-40])
    with pytest.raises(InputError, match="became shorter"):
        list(shards.blocks(3, 10))


def test_another_content_has_another_fingerprint(tmp_path: Path) -> None:
    rows, prints = np.zeros((sum(SIZES), 4)), set()
    for where in (str(tmp_path), f"memory://{tmp_path.name}"):
        for value in (rows, rows + 1):
            prints.add(RowShards.open(write(value, where)).fingerprint)
    assert len(prints) == 4


@each("typed, url", [
    ("s3://bucket/a/b", "s3://bucket/a/b"),
    ("memory://x", "memory://x"),
    ("data/x", None),
    ("file:///data/x", None),
    ("simplecache::file:///data/x", "simplecache::file:///data/x"),
    ("filecache::s3://bucket/a", "filecache::s3://bucket/a"),
    ("zip://a::https://host/b.zip", "zip://a::https://host/b.zip"),
])  # fmt: skip
def test_a_path_that_was_a_url(typed: str, url: str | None) -> None:
    assert url_of(Path(typed)) == url_of(typed) == url


def test_a_path_of_a_file_url() -> None:
    assert local_path(Path("file:///data/x")) == local_path("file:///data/x") == Path("/data/x")
