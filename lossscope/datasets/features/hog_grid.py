"""Histograms of gradients and colours of the cells of a grid: deterministic features without weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from lossscope.errors import InputError

from .base import Extract, Features, Pixels

_BINS = 8
_LAB = ((0.0, 100.0), (-60.0, 60.0), (-60.0, 60.0))  # range of L, a, b of most photographs; others fill the outer bins
_Array = npt.NDArray[np.float64]
_Hog = Callable[..., Any]


@dataclass(frozen=True)
class HogGrid:
    """x = [HOG, HOG of twice the window, Lab histograms of both, Lab mean and deviation of both, place] of each cell.

    R = rows * columns regions in reading order; the picture is resized to rows * cell by columns * cell first. d = 136:
    36 + 36 (2 x 2 blocks, 9 directions), 24 + 24 (8 bins a channel), 12, and 4 for the place. Each part but the place
    is sign(x) sqrt|x|, scaled to unit length, so that gradients and colours weigh the same.
    Source: Dalal and Triggs 2005.
    """

    rows: int = 6  # rows of the grid
    columns: int = 6  # columns of the grid
    cell: int = 16  # pixels of a cell's side, even and at least 16

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1 or self.cell < 16 or self.cell % 2:
            got = f"{self.rows}, {self.columns} and {self.cell}"
            raise InputError(f"hog-grid:rows and columns must be at least 1, cell even and at least 16; got {got}")

    @property
    def identity(self) -> str:
        return repr(self)

    def open(self, device: str) -> Extract:
        """Return the function that extracts features; it runs on the CPU whatever the device."""
        hog, lab = _skimage()
        position = self._place_features()

        def extract(pixels: Pixels) -> Features:
            return np.stack([self._extract_one(picture, hog, lab, position) for picture in pixels])

        return extract

    def _extract_one(self, picture: Pixels, hog: _Hog, lab: _Hog, position: _Array) -> Features:
        size = (self.columns * self.cell, self.rows * self.cell)
        near = Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0))).resize(size, Image.Resampling.BILINEAR)
        margin = self.cell // 2
        padded = np.pad(np.asarray(near), ((margin, margin), (margin, margin), (0, 0)), mode="edge")
        half = (padded.shape[1] // 2, padded.shape[0] // 2)
        wide = Image.fromarray(padded).resize(half, Image.Resampling.BOX)
        parts = [_gradients(np.asarray(near), self.cell // 2, hog)[::2, ::2], _gradients(np.asarray(wide), margin, hog)]
        colours = [_split_into_cells(lab(np.asarray(near)), self.cell), _windows(lab(np.asarray(wide)), margin)]
        parts += [_histogram(values) for values in colours]
        parts.append(np.concatenate([_moments(values) for values in colours], axis=-1))
        flat = [_root_and_normalise(part.reshape(self.rows * self.columns, -1)) for part in parts]
        return np.concatenate([*flat, position], axis=1).astype(np.float32)

    def _place_features(self) -> _Array:
        """Return (R, 4): sine and cosine of a quarter turn from top to bottom and from left to right, of length 1/2."""
        down, across = np.divmod(np.arange(self.rows * self.columns), self.columns)
        turns = np.stack([(down + 0.5) / self.rows, (across + 0.5) / self.columns], axis=1) * np.pi / 2
        return np.asarray(np.concatenate([np.sin(turns), np.cos(turns)], axis=1) / np.sqrt(8))


def _gradients(image: npt.NDArray[np.uint8], block: int, hog: _Hog) -> _Array:
    """Return HOG (a, b, 36) of all windows of 2 x 2 blocks, one block apart; `block`: pixels of a side."""
    windows = hog(image, 9, (block, block), (2, 2), "L2-Hys", feature_vector=False, channel_axis=-1)
    return np.asarray(windows, dtype=np.float64).reshape(*windows.shape[:2], -1)


def _split_into_cells(values: _Array, side: int) -> _Array:
    """Reshape (rows * side, columns * side, 3) to (rows, columns, side * side, 3)."""
    rows, columns = values.shape[0] // side, values.shape[1] // side
    return values.reshape(rows, side, columns, side, 3).swapaxes(1, 2).reshape(rows, columns, side * side, 3)


def _windows(values: _Array, block: int) -> _Array:
    """Return windows of 2 x 2 blocks, one block apart: (rows, columns, 4 * block * block, 3)."""
    blocks = _split_into_cells(values, block)
    corners = (blocks[:-1, :-1], blocks[:-1, 1:], blocks[1:, :-1], blocks[1:, 1:])
    return np.concatenate(corners, axis=2)


def _histogram(values: _Array) -> _Array:
    """Return (rows, columns, 24) of (rows, columns, pixels, 3): share of pixels in each of 8 bins of L, a and b."""
    low, high = np.array(_LAB).T
    bins = np.clip((values - low) / (high - low) * _BINS, 0, _BINS - 1).astype(np.int64)
    shares = [(bins == k).mean(axis=2) for k in range(_BINS)]
    return np.concatenate(shares, axis=-1)


def _moments(values: _Array) -> _Array:
    return np.concatenate([values.mean(axis=2), values.std(axis=2)], axis=-1)


def _root_and_normalise(rows: _Array) -> _Array:
    """Return sign(x) sqrt|x|, each row scaled to unit length; rows of zeros stay zero."""
    rooted = np.sign(rows) * np.sqrt(np.abs(rows))
    lengths = np.linalg.norm(rooted, axis=1, keepdims=True)
    return np.asarray(rooted / np.where(lengths > 0, lengths, 1))


def _skimage() -> tuple[_Hog, _Hog]:
    from skimage.color import rgb2lab
    from skimage.feature import hog

    return hog, rgb2lab
