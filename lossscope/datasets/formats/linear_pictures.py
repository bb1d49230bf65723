"""Pictures squeezed to a square by plain linear interpolation in floats, as cv2.resize does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .decoding import open_rgb, require_resizable
from .tar_index import TarMember

Floats = npt.NDArray[np.float32]


class LinearPictures:
    """The images of some files, (3, size, size) float32 RGB in 0..1, decoded when they are used.

    Args:
        paths: the files, or members of tar files.
        size: pixels of a side; the aspect ratio is lost.
    """

    def __init__(self, paths: Sequence[Path | TarMember], size: int) -> None:
        self.paths, self.size = tuple(paths), size

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return the pictures of `rows`, (n, 3, size, size). Raises InputError naming a file that is no picture."""
        pictures = np.empty((len(rows), *self.shape), dtype=np.float32)
        for place, row in enumerate(rows.tolist()):
            pictures[place] = resize_linear(_read(self.paths[row], self.size), self.size).transpose(2, 0, 1)
        pictures /= 255
        return pictures


def resize_linear(pixels: Floats, size: int) -> Floats:
    """Resize (H, W, 3) to (size, size, 3) by linear interpolation between pixel centres, without antialiasing.

    The same as cv2.resize of float32 by INTER_LINEAR, up to rounding.
    """
    for axis in (1, 0):
        low, high, share = _neighbours(pixels.shape[axis], size)
        share = share[:, None] if axis == 1 else share[:, None, None]
        pixels = pixels.take(low, axis) * (1 - share) + pixels.take(high, axis) * share
    return pixels


def _neighbours(given: int, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return for each new pixel the old ones before and behind its centre, and the share of the latter."""
    centres = ((np.arange(size) + 0.5) * (given / size) - 0.5).clip(0, given - 1)
    low = np.floor(centres).astype(np.int64)
    return low, (low + 1).clip(0, given - 1), (centres - low).astype(np.float32)


def _read(path: Path | TarMember, size: int) -> Floats:
    picture = open_rgb(path)
    require_resizable(path, picture.size, (size, size))
    return np.asarray(picture, dtype=np.float32)
