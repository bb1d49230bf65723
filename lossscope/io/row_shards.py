"""Rows of .npy shards, of local files or behind URLs, read block by block and never as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .arrays import NpyHeader, read_npy_header
from .file_states import FileState, unchanged_since
from .files import fingerprint_of
from .locations import is_url, open_location, path_of
from .reading import reading, show_path
from .url_files import read_ranges, size_of_url, version_of_url

Rows = npt.NDArray[np.int64]
BLOCK_BYTES = 1 << 26  # of a block of rows
_GAP, _LOCAL_GAP = 1 << 16, 1 << 10  # bytes between two rows of a URL, or of a file, up to which both are read at once


@dataclass(frozen=True)
class Shard:
    """One .npy file of rows (n, d) of numbers."""

    location: str  # path or URL
    header: NpyHeader
    version: str  # changes when the file does: its time, or what the store calls its version
    state: FileState | None  # of a local file, which must stay as it is

    @classmethod
    def open(cls, location: str) -> Shard:
        """Read the header. Raises InputError when it is damaged, of other than rows of floats, or of another size."""
        if is_url(location):
            state, size, version = None, size_of_url(location), version_of_url(location)
        else:
            state = FileState.of(path_of(location))
            size, version = state.size, str(state.changed)
        with open_location(location) as stream, reading(location, "a whole .npy file", "Write it again"):
            header = read_npy_header(stream, show_path(location), size)
        if len(header.shape) != 2 or header.dtype.kind != "f" or header.fortran:
            order = " with columns first" if header.fortran else ""
            raise InputError(
                f"shards must be rows of floats, one row after the other; {show_path(location)} holds {header.dtype} "
                f"{header.shape}{order}"
            )
        return cls(location, header, version, state)

    def __len__(self) -> int:
        return self.header.shape[0]

    @property
    def _row_bytes(self) -> int:
        return self.header.shape[1] * self.header.dtype.itemsize

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows `start`..`stop`-1 in memory."""
        return self._read_runs([(start, stop)])

    def take(self, rows: Rows) -> npt.NDArray[Any]:
        """Return some rows, in increasing order, in memory; only the ranges around them are read."""
        gap = (_GAP if is_url(self.location) else _LOCAL_GAP) // max(self._row_bytes, 1) + 1
        edges = np.flatnonzero(np.diff(rows) > gap) + 1
        runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, edges)]
        starts = np.cumsum([0, *(stop - start for start, stop in runs)])[:-1]
        positions = np.concatenate([
            start + run - run[0] for start, run in zip(starts, np.split(rows, edges), strict=True)
        ])  # fmt: skip
        taken: npt.NDArray[Any] = self._read_runs(runs)[positions]
        return taken

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        first, size, (_, width) = self.header.start, self._row_bytes, self.header.shape
        ranges = [(first + a * size, first + b * size) for a, b in runs]
        parts = read_ranges(self.location, ranges) if self.state is None else _read_ranges(self.state, ranges)
        return np.frombuffer(b"".join(parts), self.header.dtype).reshape(-1, width)


def _read_ranges(state: FileState, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return ranges of bytes of a local file, read, not mapped: memory is that of the ranges."""
    path, parts = state.path, []
    with unchanged_since(state), reading(path, "a whole .npy file", "Write it again"), open(path, "rb") as file:
        for start, stop in ranges:
            file.seek(start)
            parts.append(file.read(stop - start))
            if len(parts[-1]) != stop - start:
                raise InputError(f"{show_path(path)} must be as long as its header states; it became shorter meanwhile")
    return parts


@dataclass(frozen=True)
class RowShards:
    """Rows (N, d) of shards, one behind the other."""

    shards: tuple[Shard, ...]

    @classmethod
    def open(cls, locations: Sequence[str]) -> RowShards:
        """Open shards, in the order given. Raises InputError, naming the first of another width than the others."""
        shards = tuple(Shard.open(location) for location in locations)
        for shard in shards:
            if shard.header.shape[1] != shards[0].header.shape[1]:
                raise InputError(
                    f"shards must have one width; {show_path(shard.location)} holds {shard.header.shape}, and "
                    f"{show_path(shards[0].location)} {shards[0].header.shape}"
                )
        return cls(tuple(shard for shard in shards if len(shard)) or shards[:1])

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def width(self) -> int:
        """d."""
        return self.shards[0].header.shape[1]

    @cached_property
    def starts(self) -> list[int]:
        """First row of every shard, and N."""
        return list(accumulate((len(shard) for shard in self.shards), initial=0))

    @property
    def fingerprint(self) -> str:
        """Of names, headers and versions, not of the numbers: these are read once, when they are needed."""
        parts = (
            text
            for shard in self.shards
            for text in (shard.location.rpartition("/")[2], str(shard.header), shard.version)
        )
        return fingerprint_of("shards", *parts)

    def parts(self, most: int) -> list[tuple[int, int]]:
        """Return consecutive ranges of at most `most` rows, none of which spans two shards."""
        ranges: list[tuple[int, int]] = []
        for start, stop in pairwise(self.starts):
            number = max(-(-(stop - start) // most), 1)
            edges = [start + (stop - start) * i // number for i in range(number + 1)]
            ranges += pairwise(edges)
        return ranges

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield (first row, rows) of a range within one shard, 64 MB at a time."""
        index = int(np.searchsorted(self.starts, start, "right")) - 1
        shard, offset = self.shards[index], self.starts[index]
        size = max(BLOCK_BYTES // max(shard.header.bytes // max(len(shard), 1), 1), 1)
        for first in range(start, stop, size):
            yield first, shard.read(first - offset, min(first + size, stop) - offset)

    def take(self, rows: Rows) -> npt.NDArray[Any]:
        """Return some rows, in increasing order, in memory."""
        dtype = np.result_type(*(shard.header.dtype for shard in self.shards))
        edges = np.searchsorted(rows, self.starts)
        parts = [
            shard.take(rows[a:b] - start)
            for shard, start, a, b in zip(self.shards, self.starts, edges, edges[1:], strict=False)
            if b > a
        ]
        return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros((0, self.width), dtype)
