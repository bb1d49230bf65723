"""Rows of many lengths by name: what is written is read, and writing is whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.datasets.formats.ragged import Ragged, Writing, write_ragged
from lossscope.errors import InputError


@settings(deadline=None, max_examples=25)
@given(lengths=st.lists(st.integers(0, 5), max_size=6), width=st.integers(1, 4))
def test_rows_come_back_by_name(lengths: list[int], width: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    dice = np.random.default_rng(0)
    made = {f"v.{k}": dice.random((count, width), dtype=np.float32) for k, count in enumerate(lengths)}
    stem = tmp_path_factory.mktemp("r") / "some.expert.0"
    times = {name: np.arange(len(rows)) / 2 for name, rows in made.items()}
    counts = {name: len(rows) for name, rows in made.items()}
    write_ragged(stem, Writing(counts, width, made.__getitem__, times.__getitem__))
    found = Ragged.open(stem)
    assert found.width == width
    assert list(found.items) == list(made)
    for name, rows in made.items():
        assert np.array_equal(found.take(name), rows)
        assert np.array_equal(found.times(name), times[name])


def test_a_set_is_unfinished_until_its_index_is_there(tmp_path: Path) -> None:
    def stop(name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        if name == "b":
            raise KeyboardInterrupt
        return np.zeros((1, 2), np.float32)

    write_ragged(tmp_path / "x", Writing({"a": 1}, 2, stop))
    assert len(Ragged.open(tmp_path / "x").items) == 1
    with pytest.raises(KeyboardInterrupt):
        write_ragged(tmp_path / "x", Writing({"a": 1, "b": 1}, 2, stop))
    with pytest.raises(InputError, match=r"x\.json must be a readable file"):
        Ragged.open(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_times_of_an_earlier_set_do_not_stay(tmp_path: Path) -> None:
    rows = np.ones((2, 3), np.float32)
    write_ragged(tmp_path / "x", Writing({"a": 2}, 3, lambda _: rows, lambda _: np.arange(2.0)))
    write_ragged(tmp_path / "x", Writing({"a": 2}, 3, lambda _: rows))
    assert np.isnan(Ragged.open(tmp_path / "x").times("a")).all()


def test_what_is_made_must_have_the_shape_that_was_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a' of .*x\.npy must be \(2, 3\); got \(2, 4\)"):
        write_ragged(tmp_path / "x", Writing({"a": 2}, 3, lambda _: np.ones((2, 4))))
