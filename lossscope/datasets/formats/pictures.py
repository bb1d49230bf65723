"""Decode picture files to square arrays of pixels, in threads; pixels are kept in memory when they fit."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lossscope.core.types import OnStep
from lossscope.errors import InputError

from .decoding import Pixels, Preprocessing
from .tar_index import TarMember

T = TypeVar("T")
_Rows = npt.NDArray[np.int64]
_CACHE_BYTES = 2 << 30
_CHUNK = 256  # files decoded between two calls of progress


class PictureFiles:
    """The images of some files, (3, size, size) RGB, decoded when they are used.

    Args:
        paths: the files, or members of tar files.
        preprocessing: how a picture becomes a square.
        cache_bytes: decoded pixels are kept when those of all pictures take at most this much memory (2 GiB).

    Raises:
        InputError: in `take`, naming the file, when one is missing, cut off or no picture.
    """

    def __init__(
        self, paths: Sequence[Path | TarMember], preprocessing: Preprocessing, cache_bytes: int = _CACHE_BYTES
    ) -> None:
        self.paths, self.preprocessing, self._cache_bytes = tuple(paths), preprocessing, cache_bytes
        self.keeps = len(self.paths) * math.prod(self.shape) * np.dtype(preprocessing.dtype).itemsize <= cache_bytes
        kept = len(self.paths) if self.keeps else 0
        self._pixels: Pixels = np.empty((kept, *self.shape), preprocessing.dtype)
        self._decoded = np.zeros(kept, dtype=np.bool_)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.preprocessing.shape

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: _Rows) -> Pixels:
        """Return the pictures of `rows`, (n, 3, size, size): uint8, or float32 in 0..1."""
        rows = np.asarray(rows, dtype=np.int64)
        if not self.keeps:
            return self._stack(self._decode(rows.tolist()))
        missing = np.unique(rows[~self._decoded[rows]])
        if len(missing):
            self._pixels[missing] = self._stack(self._decode(missing.tolist()))
            self._decoded[missing] = True
        return self._pixels[rows]

    def load_all(self, progress: OnStep | None = None) -> None:
        """Decode all pictures now, calling progress(done, total); do nothing when they would not be kept."""
        for start in range(0, len(self) if self.keeps else 0, _CHUNK):
            rows = np.arange(start, min(start + _CHUNK, len(self)), dtype=np.int64)
            self.take(rows)
            if progress is not None:
                progress(int(rows[-1]) + 1, len(self))

    def readable_rows(self) -> list[int]:
        """Decode all files and return the rows of those that succeed; pixels are kept if all of them fit."""
        readable: list[int] = []
        for start in range(0, len(self), _CHUNK):
            rows = range(start, min(start + _CHUNK, len(self)))
            for row, pixels in zip(rows, _map_in_threads(self._try_decode, rows), strict=True):
                if pixels is not None:
                    readable.append(row)
                    self._keep(row, pixels)
        return readable

    def select(self, rows: Sequence[int]) -> PictureFiles:
        """Return the pictures of `rows`, with those of their pixels that are decoded."""
        part = PictureFiles([self.paths[row] for row in rows], self.preprocessing, self._cache_bytes)
        for new, old in enumerate(rows) if self.keeps else ():
            if self._decoded[old]:
                part._keep(new, self._pixels[old])
        return part

    def _keep(self, row: int, pixels: Pixels) -> None:
        if self.keeps:
            self._pixels[row] = pixels
            self._decoded[row] = True

    def _try_decode(self, row: int) -> Pixels | None:
        try:
            return self.preprocessing.decode(self.paths[row])
        except InputError:
            return None

    def _decode(self, rows: Sequence[int]) -> list[Pixels]:
        return _map_in_threads(lambda row: self.preprocessing.decode(self.paths[row]), rows)

    def _stack(self, pictures: list[Pixels]) -> Pixels:
        return np.stack(pictures) if pictures else np.empty((0, *self.shape), self.preprocessing.dtype)


def _map_in_threads(function: Callable[[int], T], rows: Sequence[int]) -> list[T]:
    if len(rows) < 2:
        return [function(row) for row in rows]
    with ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, rows))
