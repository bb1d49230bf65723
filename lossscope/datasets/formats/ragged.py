"""Arrays of one width and different lengths by name, in one memory-mapped file: frames of videos, words of captions.

`{stem}.npy` has all rows, (total, d) float32; `{stem}.json` is the index: the first row and the number of rows of each
name; `{stem}.times.npy`, if present, has the time in seconds at the middle of each row, NaN where it is not known. Both
have checksums of their rows beside them.
The index is written last: files without one are not complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.types import OnStep
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.folder_lock import lock_files
from lossscope.io.json_files import expect, member
from lossscope.io.manifests import read_manifest, write_manifest
from lossscope.io.rows_on_disk import RowsOnDisk, checksum_file, write_rows

SCHEMA = "lossscope.ragged/1"
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RaggedArrays:
    """Ragged arrays that are read from disk."""

    stem: Path  # beginning of the paths of the files
    items: Mapping[str, tuple[int, int]]  # name -> (first row, number of rows)
    rows: RowsOnDisk  # (total, d)
    row_times: RowsOnDisk | None  # (total,) seconds

    @classmethod
    def open(cls, stem: Path) -> RaggedArrays:
        """Open the files of a stem, `features/rgb`.

        Raises InputError when files are missing, damaged or do not fit.
        """
        index = _path(stem, ".json")
        document = read_manifest(index)
        if document.get("schema") != SCHEMA:
            raise InputError(f"{index} must be an index of {SCHEMA}; got schema {document.get('schema')!r}")
        rows = _open_floats(_path(stem, ".npy"), 2)
        times_file = _path(stem, ".times.npy")
        row_times = _open_floats(times_file, 1) if times_file.exists() else None
        if row_times is not None and len(row_times) != len(rows):
            raise InputError(f"{times_file} must have {len(rows)} times, one for each row; got {len(row_times)}")
        return cls(stem, _read_items(document, str(index), len(rows)), rows, row_times)

    @property
    def width(self) -> int:
        """Width d of a row."""
        return int(self.rows.shape[1])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of names, lengths and shape, not of the values."""
        items = [f"{name} {first} {count}" for name, (first, count) in self.items.items()]
        return fingerprint_of(f"{self.rows.shape}", *items)

    def take(self, name: str) -> Floats:
        """Return the rows (T, d) of a name, T = 0 when there are none.

        Raises InputError when one is not finite, or not what was written.
        """
        first, count = self.items.get(name, (0, 0))
        rows, finite = self.rows.take_floats(slice(first, first + count))
        if not finite.all():
            raise InputError(f"rows of {name!r} in {self.stem}.npy must be finite; got NaN or infinity: extract again")
        return rows

    def times(self, name: str) -> Floats:
        """Return the times (T,) of the rows of a name in seconds, NaN where not known."""
        first, count = self.items.get(name, (0, 0))
        if self.row_times is None:
            return np.full(count, np.nan, dtype=np.float32)
        return np.asarray(self.row_times.take(slice(first, first + count)), dtype=np.float32)


@dataclass(frozen=True)
class RowsByName:
    """Rows to write, computed one name at a time, so that all of them never have to be in memory."""

    lengths: Mapping[str, int]  # name -> number of rows
    width: int  # d
    compute: Callable[[str], npt.NDArray[Any]]  # name -> (T, d) rows
    times: Callable[[str], npt.NDArray[Any]] | None = None  # name -> (T,) seconds


def write_ragged(stem: Path, rows: RowsByName, progress: OnStep | None = None) -> None:
    """Write ragged arrays, the index last.

    Raises InputError when a computed array has another shape than stated, and while another process writes them.
    """
    with lock_files(_path(stem, ".npy")):
        _write_files(stem, rows, progress)


def _write_files(stem: Path, rows: RowsByName, progress: OnStep | None) -> None:
    _path(stem, ".json").unlink(missing_ok=True)
    total = sum(rows.lengths.values())
    _write_rows(_path(stem, ".npy"), (total, rows.width), rows.lengths, rows.compute, progress)
    if rows.times is not None:
        _write_rows(_path(stem, ".times.npy"), (total,), rows.lengths, rows.times, None)
    else:
        for file in (_path(stem, ".times.npy"), checksum_file(_path(stem, ".times.npy"))):
            file.unlink(missing_ok=True)
    items = {name: [first, count] for name, first, count in _slices(rows.lengths)}
    write_manifest(_path(stem, ".json"), {"schema": SCHEMA, "width": rows.width, "items": items})


def _write_rows(
    file: Path,
    shape: tuple[int, ...],
    lengths: Mapping[str, int],
    compute: Callable[[str], npt.NDArray[Any]],
    progress: OnStep | None,
) -> None:
    def pieces() -> Iterator[npt.NDArray[Any]]:
        for done, (name, count) in enumerate(lengths.items(), 1):
            values = compute(name)
            if values.shape != (count, *shape[1:]):
                raise InputError(f"{name!r} of {file} must be {(count, *shape[1:])}; got {values.shape}")
            yield values
            if progress is not None:
                progress(done, len(lengths))

    write_rows(file, shape, pieces())


def _slices(lengths: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, first row, number of rows)."""
    first = 0
    for name, count in lengths.items():
        yield name, first, count
        first += count


def _path(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)  # with_suffix would cut names of experts at a dot


def _open_floats(file: Path, axes: int) -> RowsOnDisk:
    rows = RowsOnDisk.open(file)
    if rows.dtype.kind != "f" or len(rows.shape) != axes or (axes == 2 and rows.shape[1] < 1):
        shape = "(total, d)" if axes == 2 else "(total,)"
        raise InputError(f"{file} must hold floats, {shape}; got {rows.dtype} {rows.shape}")
    return rows


def _read_items(document: dict[str, Any], where: str, total: int) -> dict[str, tuple[int, int]]:
    items: dict[str, tuple[int, int]] = {}
    for name, span in member(document, "items", dict, where).items():
        pair = expect(span, list, f"{name!r} of {where}")
        if len(pair) != 2:
            raise InputError(f"{name!r} of {where} must be [first row, rows]; got {pair!r}")
        first, count = (expect(value, int, f"{name!r} of {where}") for value in pair)
        if min(first, count) < 0 or first + count > total:
            raise InputError(f"rows of {name!r} in {where} must be within the {total} there are; got {first}+{count}")
        items[name] = (first, count)
    return items
