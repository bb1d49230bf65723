"""Rows of a .npy file that may be larger than memory, with the CRC-32 of each beside them in `NAME.crc32.npy`."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .arrays import open_npy, read_npy
from .file_states import FileState
from .files import write_atomically
from .reading import show_path
from .temporary_files import reserve

_Rows = npt.NDArray[np.int64]


class RowsOnDisk:
    """Rows (N, ...), memory-mapped; each is compared with its checksum when it is read for the first time.

    Where another writer changes the file meanwhile, each is compared again; rows without checksums are then an error.

    Args:
        state: of the file of the rows when it was opened.
        rows: (N, ...), memory-mapped.
        checksums: (N,) uint32; None for rows that other programs wrote.
    """

    def __init__(self, state: FileState, rows: npt.NDArray[Any], checksums: npt.NDArray[np.uint32] | None) -> None:
        self._state, self._rows, self._checksums = state, rows, checksums
        self._compared = np.zeros(len(rows), bool)

    @property
    def file(self) -> Path:
        """The file of the rows, for messages."""
        return self._state.path

    @classmethod
    def open(cls, file: Path) -> RowsOnDisk:
        """Open the rows of a file.

        Raises InputError when it is missing or damaged, has no rows, or its checksums are not one for each row.
        """
        state, rows, beside = FileState.of(file), open_npy(file), checksum_file(file)
        if rows.ndim < 1:
            raise InputError(f"{show_path(file)} must be an array of rows; it is one number")
        if not beside.exists():
            return cls(state, rows, None)
        checksums = read_npy(beside)
        if checksums.shape != (len(rows),) or checksums.dtype != np.uint32:
            what = f"uint32 ({len(rows)},), one for each row of {file.name}"
            raise InputError(
                f"{show_path(beside)} must be {what}; got {checksums.dtype} {checksums.shape}. Copy both again; "
                "if you replaced the rows on purpose, remove it"
            )
        return cls(state, rows, checksums)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._rows.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._rows.dtype

    def __len__(self) -> int:
        return len(self._rows)

    def select(self, rows: slice) -> RowsOnDisk:
        """Return some of the rows, still on disk."""
        checksums = None if self._checksums is None else self._checksums[rows]
        return RowsOnDisk(self._state, self._rows[rows], checksums)

    def take(self, rows: _Rows | slice) -> npt.NDArray[Any]:
        """Return rows in memory. Raises InputError for one that is not what was written."""
        self._notice_writers()  # a row behind the end of a mapped file would end the process
        numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
        values = np.array(self._rows[rows]) if isinstance(rows, slice) else np.asarray(self._rows[numbers])
        self._notice_writers()
        if self._checksums is not None:
            new = np.flatnonzero(~self._compared[numbers])
            self._compare(numbers[new], values[new], self._checksums)
        return values

    def take_floats(self, rows: _Rows | slice) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return rows as float32, and (n,) whether each is finite; numbers too great for float32 are not."""
        with np.errstate(over="ignore"):
            values = np.asarray(self.take(rows), dtype=np.float32)
        return values, np.atleast_1d(np.isfinite(values).all(axis=tuple(range(1, values.ndim))))

    def _notice_writers(self) -> None:
        """Forget which rows were compared if the file was written again. Raises InputError without their checksums."""
        if self._state.is_rewritten:
            now = FileState.of(self.file)
            if self._checksums is None or now.size != self._state.size:
                self._state.require_not_rewritten()
            self._state = now
            self._compared[:] = False

    def _compare(self, rows: _Rows, values: npt.NDArray[Any], checksums: npt.NDArray[np.uint32]) -> None:
        """Raise InputError for the first row that is not what was written."""
        for row, value in zip(rows.tolist(), values, strict=True):
            if _checksum(value) != checksums[row]:
                beside = checksum_file(self.file)
                raise InputError(
                    f"rows of {show_path(self.file)} must match their checksums; row {row} differs from its checksum "
                    f"in {beside.name}. Copy both again; if you replaced the file on purpose, remove {beside.name}"
                )
        self._compared[rows] = True


def write_rows(file: Path, shape: tuple[int, ...], pieces: Iterable[npt.NDArray[Any]]) -> None:
    """Write rows as float32, atomically, then their checksums.

    Args:
        file: ending in .npy.
        shape: of all rows, (N, ...).
        pieces: (n, ...) rows that follow each other.
    """
    checksums = np.zeros(shape[0], np.uint32)
    checksum_file(file).unlink(missing_ok=True)
    with write_atomically(file) as part:
        rows = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
        reserve(part)
        first = 0
        for piece in pieces:
            values = np.ascontiguousarray(piece, np.float32)
            rows[first : first + len(values)] = values
            checksums[first : first + len(values)] = [_checksum(value) for value in values]
            first += len(values)
        rows.flush()
    with write_atomically(checksum_file(file)) as part, open(part, "wb") as stream:
        np.save(stream, checksums)


def _checksum(row: npt.NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(row).data)


def checksum_file(file: Path) -> Path:
    """Return the path of the checksums of a file's rows."""
    return file.with_name(f"{file.name.removesuffix('.npy')}.crc32.npy")
