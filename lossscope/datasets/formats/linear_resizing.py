"""Plain linear interpolation of pictures in floats, as cv2.resize does it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


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
