"""Arrays of one width and many lengths by name, in one memory-mapped file: frames of videos, words of captions.

`{stem}.npy` holds all rows, (total, d) float32; `{stem}.json` says where each name's rows begin and how many there
are; `{stem}.times.npy`, if present, is the time in seconds at the middle of each row, NaN where it is not known.
The index is written last: a set without one is not finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of, write_atomically, write_text
from lossscope.io.json_files import expect, member, read_json

from .feature_rows import mapped

SCHEMA = "lossscope.ragged/1"
Floats = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Ragged:
    """A set that was written. items: name -> (first row, number of rows). rows: (total, d), on disk."""

    stem: Path
    items: Mapping[str, tuple[int, int]]
    rows: npt.NDArray[Any]
    stamps: npt.NDArray[Any] | None

    @classmethod
    def open(cls, stem: Path) -> Ragged:
        """The set of a stem, `features/rgb`. Raises InputError when files are missing, damaged or do not fit."""
        index = _beside(stem, ".json")
        document = read_json(index)
        if document.get("schema") != SCHEMA:
            raise InputError(f"{index} must be an index of {SCHEMA}; got schema {document.get('schema')!r}")
        rows = _floats(_beside(stem, ".npy"), 2)
        times = _beside(stem, ".times.npy")
        stamps = _floats(times, 1) if times.is_file() else None
        if stamps is not None and len(stamps) != len(rows):
            raise InputError(f"{times} must have {len(rows)} times, one for each row; got {len(stamps)}")
        return cls(stem, _items(document, str(index), len(rows)), rows, stamps)

    @property
    def width(self) -> int:
        """d."""
        return int(self.rows.shape[1])

    @property
    def fingerprint(self) -> str:
        """Covers names, lengths and shape, not the values."""
        told = [f"{name} {first} {count}" for name, (first, count) in self.items.items()]
        return fingerprint_of(f"{self.rows.shape}", *told)

    def take(self, name: str) -> Floats:
        """(T, d) rows of a name, T = 0 when there are none. Raises InputError when one is not finite."""
        first, count = self.items.get(name, (0, 0))
        with np.errstate(over="ignore"):  # what float32 can not hold becomes infinite, and is reported
            found = np.array(self.rows[first : first + count], dtype=np.float32)
        if not np.isfinite(found).all():
            raise InputError(f"rows of {name!r} in {self.stem}.npy must be finite; got NaN or infinity: extract anew")
        return found

    def times(self, name: str) -> Floats:
        """(T,) times of a name's rows in seconds, NaN where not known."""
        first, count = self.items.get(name, (0, 0))
        if self.stamps is None:
            return np.full(count, np.nan, dtype=np.float32)
        return np.array(self.stamps[first : first + count], dtype=np.float32)


@dataclass(frozen=True)
class Writing:
    """Rows to write under names, made when asked for, so that all of them never have to be in memory.

    lengths: name -> number of rows. make: name -> (T, d) rows. times: name -> (T,) seconds, or None.
    """

    lengths: Mapping[str, int]
    width: int
    make: Callable[[str], npt.NDArray[Any]]
    times: Callable[[str], npt.NDArray[Any]] | None = None


def write_ragged(stem: Path, what: Writing, progress: Progress | None = None) -> None:
    """Write a set, its index last. Raises InputError when a made array has not the shape that was said."""
    _beside(stem, ".json").unlink(missing_ok=True)
    total = sum(what.lengths.values())
    _fill(_beside(stem, ".npy"), (total, what.width), what.lengths, what.make, progress)
    if what.times is not None:
        _fill(_beside(stem, ".times.npy"), (total,), what.lengths, what.times, None)
    else:
        _beside(stem, ".times.npy").unlink(missing_ok=True)
    items = {name: [first, count] for name, first, count in _places(what.lengths)}
    write_text(_beside(stem, ".json"), json.dumps({"schema": SCHEMA, "width": what.width, "items": items}) + "\n")


def _fill(
    file: Path,
    shape: tuple[int, ...],
    lengths: Mapping[str, int],
    make: Callable[[str], npt.NDArray[Any]],
    progress: Progress | None,
) -> None:
    with write_atomically(file) as part:
        rows = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
        for done, (name, first, count) in enumerate(_places(lengths), 1):
            made = make(name)
            if made.shape != (count, *shape[1:]):
                raise InputError(f"{name!r} of {file} must be {(count, *shape[1:])}; got {made.shape}")
            rows[first : first + count] = made
            if progress is not None:
                progress(done, len(lengths))
        rows.flush()


def _places(lengths: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    first = 0
    for name, count in lengths.items():
        yield name, first, count
        first += count


def _beside(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)  # names of experts hold dots


def _floats(file: Path, axes: int) -> npt.NDArray[Any]:
    found = mapped(file)
    if found.dtype.kind != "f" or found.ndim != axes or (axes == 2 and found.shape[1] < 1):
        wanted = "(total, d)" if axes == 2 else "(total,)"
        raise InputError(f"{file} must hold floats, {wanted}; got {found.dtype} {found.shape}")
    return found


def _items(document: dict[str, Any], where: str, total: int) -> dict[str, tuple[int, int]]:
    items: dict[str, tuple[int, int]] = {}
    for name, place in member(document, "items", dict, where).items():
        pair = expect(place, list, f"{name!r} of {where}")
        if len(pair) != 2:
            raise InputError(f"{name!r} of {where} must be [first row, rows]; got {pair!r}")
        first, count = (expect(value, int, f"{name!r} of {where}") for value in pair)
        if min(first, count) < 0 or first + count > total:
            raise InputError(f"rows of {name!r} in {where} must be within the {total} there are; got {first}+{count}")
        items[name] = (first, count)
    return items
