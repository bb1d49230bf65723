"""Are ragged arrays read as they were written, and are incomplete ones refused?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.datasets.formats.ragged import RaggedArrays, RowsByName, write_ragged
from lossscope.errors import InputError


@settings(deadline=None, max_examples=25)
@given(lengths=st.lists(st.integers(0, 5), max_size=6), width=st.integers(1, 4))
def test_rows_are_read_back_by_name(lengths: list[int], width: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(0)
    written = {f"v.{k}": rng.random((count, width), dtype=np.float32) for k, count in enumerate(lengths)}
    stem = tmp_path_factory.mktemp("r") / "some.expert.0"
    times = {name: np.arange(len(rows)) / 2 for name, rows in written.items()}
    counts = {name: len(rows) for name, rows in written.items()}
    write_ragged(stem, RowsByName(counts, width, written.__getitem__, times.__getitem__))
    read = RaggedArrays.open(stem)
    assert read.width == width
    assert list(read.items) == list(written)
    for name, rows in written.items():
        assert np.array_equal(read.take(name), rows)
        assert np.array_equal(read.times(name), times[name])


def test_arrays_without_an_index_are_refused(tmp_path: Path) -> None:
    def stop(name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        if name == "b":
            raise KeyboardInterrupt
        return np.zeros((1, 2), np.float32)

    write_ragged(tmp_path / "x", RowsByName({"a": 1}, 2, stop))
    assert len(RaggedArrays.open(tmp_path / "x").items) == 1
    with pytest.raises(KeyboardInterrupt):
        write_ragged(tmp_path / "x", RowsByName({"a": 1, "b": 1}, 2, stop))
    with pytest.raises(InputError, match=r"x\.json must exist"):
        RaggedArrays.open(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_times_of_overwritten_arrays_are_removed(tmp_path: Path) -> None:
    rows = np.ones((2, 3), np.float32)
    write_ragged(tmp_path / "x", RowsByName({"a": 2}, 3, lambda _: rows, lambda _: np.arange(2.0)))
    write_ragged(tmp_path / "x", RowsByName({"a": 2}, 3, lambda _: rows))
    assert np.isnan(RaggedArrays.open(tmp_path / "x").times("a")).all()


def test_computed_rows_must_have_the_stated_shape(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a' of .*x\.npy must be \(2, 3\); got \(2, 4\)"):
        write_ragged(tmp_path / "x", RowsByName({"a": 2}, 3, lambda _: np.ones((2, 4))))
