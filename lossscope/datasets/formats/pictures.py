"""Decode picture files to square arrays of pixels, in threads; pixels are kept in memory when they fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from lossscope.core.types import OnStep
from lossscope.errors import InputError

from .tar_index import TarMember

T = TypeVar("T")
Pixels = npt.NDArray[np.uint8]
_Rows = npt.NDArray[np.int64]
Resample = Literal["bilinear", "bicubic"]
Fit = Literal["square", "short-side", "short-side-floor", "squeeze"]
"""How a picture becomes a square: its middle square resized; its short side resized, then the middle cut out (at a
rounded offset as torchvision, or at one rounded down as transformers); or the whole of it squeezed."""
_KERNELS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
_CACHE_BYTES = 2 << 30
_CHUNK = 256  # files decoded between two calls of progress
_MAX_RESIZED = 1 << 26  # pixels of a resized picture, and between its two passes
_ADVICE = "replace the file, or leave such files out with on_error=skip"


class PictureFiles:
    """The images of some files, (3, size, size) uint8 RGB, decoded when they are used.

    Args:
        paths: the files, or members of tar files.
        size: pixels of a side.
        fit: how a picture becomes a square.
        cache_bytes: decoded pixels are kept when those of all pictures take at most this much memory (2 GiB).
        resample: bilinear or bicubic.

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
    ) -> None:
        if size < 1:
            raise InputError(f"size of pictures must be at least 1 pixel; got {size}")
        self.paths, self.size, self.fit, self.resample = tuple(paths), size, fit, resample
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
        part = PictureFiles(paths, self.size, self.fit, self._cache_bytes, self.resample)
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
            return decode(self.paths[row], self.size, self.fit, self.resample)
        except InputError:
            return None

    def _decode(self, rows: Sequence[int]) -> list[Pixels]:
        return _map_in_threads(lambda row: decode(self.paths[row], self.size, self.fit, self.resample), rows)

    def _stack(self, pictures: list[Pixels]) -> Pixels:
        return np.stack(pictures) if pictures else np.empty((0, *self.shape), dtype=np.uint8)


def decode(path: Path | TarMember, size: int, fit: Fit = "square", resample: Resample = "bilinear") -> Pixels:
    """Decode one file to (3, size, size) uint8 RGB, resized by Pillow. Raises InputError naming the file."""
    image, kernel = open_rgb(path), _KERNELS[resample]
    if fit == "square":
        square = image.resize((size, size), kernel, box=_middle_square(*image.size))
    elif fit == "squeeze":
        require_resizable(path, image.size, (size, size))
        square = image.resize((size, size), kernel)
    else:
        square = _cut_middle(path, image, size, fit, kernel)
    return np.ascontiguousarray(np.asarray(square, dtype=np.uint8).transpose(2, 0, 1))


def open_rgb(path: Path | TarMember) -> Image.Image:
    """Return the picture in a file in RGB. Raises InputError naming the file."""
    try:
        with path.open("rb") as file, Image.open(file) as image:
            if not min(image.size):
                raise ValueError("no pixels")
            transparent = "transparency" in image.info
            return (image.convert("RGBA") if transparent else image).convert("RGB")
    except Exception as problem:  # Pillow can raise anything for a damaged file
        reason = "no such file" if isinstance(problem, FileNotFoundError) else f"{type(problem).__name__} ({problem})"
        raise InputError(f"{path} must be a whole picture; got {reason}: {_ADVICE}") from None


def require_resizable(path: Path | TarMember, old: tuple[int, int], new: tuple[int, int]) -> None:
    """Raise InputError when resizing a picture takes more than 2²⁶ pixels, as that of a long thin one does.

    Args:
        path: of the picture, for the message.
        old: its width and height.
        new: those after it is resized, first along the width, then along the height.
    """
    if new[0] * max(old[1], new[1]) > _MAX_RESIZED:
        got = f"{old[0]} x {old[1]}, resized to {new[0]} x {new[1]}"
        raise InputError(f"{path} must be of at most {_MAX_RESIZED} pixels when it is resized; got {got}: {_ADVICE}")


def _cut_middle(
    path: Path | TarMember, image: Image.Image, size: int, fit: Fit, kernel: Image.Resampling
) -> Image.Image:
    """Return the middle square of a picture whose short side is resized first."""
    short = min(image.size)
    width, height = (size if side == short else int(size * side / short) for side in image.size)
    require_resizable(path, image.size, (width, height))
    left, top = ((side - size) / 2 for side in (width, height))
    corner = (int(left), int(top)) if fit == "short-side-floor" else (round(left), round(top))
    return image.resize((width, height), kernel).crop((*corner, corner[0] + size, corner[1] + size))


def _middle_square(width: int, height: int) -> tuple[float, float, float, float]:
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return (left, top, left + side, top + side)


def _map_in_threads(function: Callable[[int], T], rows: Sequence[int]) -> list[T]:
    if len(rows) < 2:
        return [function(row) for row in rows]
    with ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, rows))
