"""Is every row read as it was written, and are files of other programs read as they are?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.io.rows_on_disk import RowsOnDisk, checksum_file, write_rows

ROWS = np.arange(24, dtype=np.float32).reshape(6, 2, 2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a file of six rows in two pieces."""
    write_rows(tmp_path / "a.npy", ROWS.shape, [ROWS[:4], ROWS[4:]])
    return tmp_path / "a.npy"


def test_rows_come_back_by_number_and_by_slice(file: Path) -> None:
    rows = RowsOnDisk.open(file)
    assert (rows.shape, rows.dtype, len(rows)) == (ROWS.shape, np.float32, 6)
    assert np.array_equal(rows.take(np.array([5, 0, 5])), ROWS[[5, 0, 5]])
    assert np.array_equal(rows.take(slice(2, 4)), ROWS[2:4])
    assert np.array_equal(rows.select(slice(1, None, 2)).take(np.array([2])), ROWS[[5]])
    assert np.array_equal(np.load(file), ROWS)  # as any program reads it
    assert sorted(path.name for path in file.parent.iterdir()) == ["a.crc32.npy", "a.npy"]


@settings(deadline=None, max_examples=40)
@given(bit=st.integers(0, 24 * 32 - 1))
def test_every_flipped_bit_of_a_row_is_met_when_the_row_is_read(
    bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("rows") / "a.npy"
    write_rows(file, ROWS.shape, [ROWS])
    content = bytearray(file.read_bytes())
    content[len(content) - ROWS.nbytes + bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    damaged = bit // (4 * 32)
    rows = RowsOnDisk.open(file)
    rows.take(np.delete(np.arange(6), damaged))
    with pytest.raises(InputError, match=rf"row {damaged} differs from its checksum in a\.crc32\.npy"):
        rows.take(np.array([damaged]))
    with pytest.raises(InputError, match="Copy both again"):
        rows.select(slice(damaged, None)).take(np.array([0]))


def test_checksums_of_other_rows_are_refused(file: Path) -> None:
    np.save(file, ROWS[:5])
    with pytest.raises(
        InputError, match=r"a\.crc32\.npy must be uint32 \(5,\), one for each row of a\.npy; got uint32"
    ):
        RowsOnDisk.open(file)
    np.save(checksum_file(file), np.zeros(5))
    with pytest.raises(InputError, match=r"got float64 \(5,\)"):
        RowsOnDisk.open(file)


def test_rows_without_checksums_are_read_as_they_are(file: Path) -> None:
    checksum_file(file).unlink()
    np.save(file, ROWS * 2)
    assert np.array_equal(RowsOnDisk.open(file).take(slice(None)), ROWS * 2)


def test_one_number_is_no_array_of_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.float32(1))
    with pytest.raises(InputError, match=r"a\.npy must be an array of rows; it is one number"):
        RowsOnDisk.open(tmp_path / "a.npy")


def test_an_interrupted_write_leaves_the_rows_of_before_without_checksums(file: Path) -> None:
    def stop() -> object:
        yield ROWS[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(file, ROWS.shape, stop())  # type: ignore[arg-type]
    assert [path.name for path in file.parent.iterdir()] == ["a.npy"]
    assert np.array_equal(RowsOnDisk.open(file).take(slice(None)), ROWS)


def test_floats_are_told_to_be_finite_row_by_row(tmp_path: Path) -> None:
    """Features without rows raised a ValueError of numpy."""
    np.save(tmp_path / "a.npy", np.array([[1.0, 2.0], [np.nan, 0.0], [1e300, 0.0]]))
    rows = RowsOnDisk.open(tmp_path / "a.npy")
    values, finite = rows.take_floats(slice(None))
    assert (values.dtype, finite.tolist()) == (np.float32, [True, False, False])
    assert rows.take_floats(np.array([], np.int64))[0].shape == (0, 2)
