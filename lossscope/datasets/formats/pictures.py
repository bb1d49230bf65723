"""Decode picture files to square arrays of pixels, in threads; pixels are kept in memory when they fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lossscope.core.types import OnStep
from lossscope.errors import InputError

from .decoding import Fit, Pixels, Resample, Rgb, decode
from .tar_index import TarMember

T = TypeVar("T")
_Rows = npt.NDArray[np.int64]
_CACHE_BYTES = 2 << 30
_CHUNK = 256  # files decoded between two calls of progress


class PictureFiles:
    """The images of some files, (3, size, size) uint8 RGB, decoded when they are used.

    Args:
        paths: the files, or members of tar files.
        size: pixels of a side.
        fit: how a picture becomes a square.
        cache_bytes: decoded pixels are kept when those of all pictures take at most this much memory (2 GiB).
        resample: bilinear or bicubic.
        rgb: whether pictures of other modes become RGB first or last.

    Raises:
        InputError: size < 1; in `take`, naming the file, when one is missing, cut off or no picture.
    """

    def __init__(
        self,
        paths: Sequence[Path | TarMember],
        size: int,
        fit: Fit = "square",
        cache_bytes: int = _CACHE_BYTES,
        resample: Resample = "bilinear",
        rgb: Rgb = "first",
    ) -> None:
        if size < 1:
            raise InputError(f"size of pictures must be at least 1 pixel; got {size}")
        self.paths, self.size, self.fit, self.resample, self.rgb = tuple(paths), size, fit, resample, rgb
        self.keeps = len(self.paths) * 3 * size * size <= cache_bytes
        self._cache_bytes = cache_bytes
        kept = len(self.paths) if self.keeps else 0
        self._pixels: Pixels = np.empty((kept, *self.shape), dtype=np.uint8)
        self._decoded = np.zeros(kept, dtype=np.bool_)

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: _Rows) -> Pixels:
        """Return the pictures of `rows`, (n, 3, size, size) uint8."""
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
        paths = [self.paths[row] for row in rows]
        part = PictureFiles(paths, self.size, self.fit, self._cache_bytes, self.resample, self.rgb)
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
            return self._decode_one(row)
        except InputError:
            return None

    def _decode(self, rows: Sequence[int]) -> list[Pixels]:
        return _map_in_threads(self._decode_one, rows)

    def _decode_one(self, row: int) -> Pixels:
        return decode(self.paths[row], self.size, self.fit, self.resample, self.rgb)

    def _stack(self, pictures: list[Pixels]) -> Pixels:
        return np.stack(pictures) if pictures else np.empty((0, *self.shape), dtype=np.uint8)


def _map_in_threads(function: Callable[[int], T], rows: Sequence[int]) -> list[T]:
    if len(rows) < 2:
        return [function(row) for row in rows]
    with ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, rows))
