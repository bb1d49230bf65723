"""Compute perceptual hashes of pictures; copies in another size or quality share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lossscope.core.types import Progress
from lossscope.datasets.base import Images

from .material import Material
from .pictures import Pictures

_SIDE = 16  # cells of a side
_BLOCK = 128  # pictures read at a time
_LEAST = 2.0  # of 255: a picture whose mean step from cell to cell is smaller has no detail


@dataclass(frozen=True)
class PictureHashes:
    """Hashes and thumbnails, which copies of a picture share."""

    hashes: npt.NDArray[np.uint8]  # (N, 96) bits of the perceptual hash of each picture
    thumbnails: npt.NDArray[np.uint8]  # (N, 816)
    needs: ClassVar[tuple[type, ...]] = (Pictures,)

    @classmethod
    def of(cls, material: Material, pictures: Pictures) -> PictureHashes:
        """Hash the pictures."""
        return cls(*hash_pictures(pictures.images, material.progress))


def hash_pictures(
    pictures: Images, progress: Progress | None = None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return 768 bits of each picture, (N, 96), and its thumbnail, (N, 816): 16 x 17 cells, colour by colour.

    A bit is 1 where a cell is brighter than the cell to its left. A picture without detail has only zeros.

    Args:
        pictures: N items of (3, H, W).
        progress: called with (label, done, of).
    """
    hashes = np.zeros((len(pictures), 3 * _SIDE * _SIDE // 8), np.uint8)
    thumbnails = np.zeros((len(pictures), 3 * _SIDE * (_SIDE + 1)), np.uint8)
    for start in range(0, len(pictures), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(pictures)), dtype=np.int64)
        pixels = np.asarray(pictures.take(rows), np.float32)
        pixels = pixels if pixels.max(initial=0) > 1 else pixels * 255
        small = _shrink(pixels)
        steps = np.diff(small, axis=3)
        bits = np.packbits(steps > 0, axis=-1).reshape(len(rows), -1)
        bits[np.abs(steps).mean((1, 2, 3)) < _LEAST] = 0
        hashes[rows] = bits
        thumbnails[rows] = small.reshape(len(rows), -1).round()
        if progress:
            progress("comparing pictures", int(rows[-1]) + 1, len(pictures))
    return hashes, thumbnails


def _shrink(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(n, 3, H, W) -> (n, 3, 16, 17), means of rectangles."""
    import torch

    small = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(pixels), (_SIDE, _SIDE + 1))
    return np.asarray(small.numpy(), np.float32)
