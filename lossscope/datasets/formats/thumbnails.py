"""Pictures of a split -> small data addresses, which a page shows without a file beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from PIL import Image

from ..base import Split

_SIDE = 96  # pixels, twice as many as a page shows


def thumbnails(split: Split, ids: Iterable[str]) -> dict[str, str]:
    """Return id -> `data:image/webp;base64,...` of the pictures among the ids; nothing of features and texts.

    Args:
        split: of images.
        ids: of items of any side; those that are no image of the split are left out.

    Raises:
        InputError: naming the file of a picture that cannot be read.
    """
    shape = split.images.shape
    if not isinstance(shape, tuple) or len(shape) != 3 or shape[0] != 3:
        return {}
    row_of = {id: row for row, id in enumerate(split.image_ids)}
    kept = sorted({id for id in ids if id in row_of})
    pixels = split.images.take(np.array([row_of[id] for id in kept], dtype=np.int64))
    assert isinstance(pixels, np.ndarray)
    return {id: _address(item) for id, item in zip(kept, pixels, strict=True)}


def _address(pixels: npt.NDArray[np.generic]) -> str:
    """Return the picture of (3, H, W) pixels, uint8 or 0..1, as a WebP of at most 96 pixels a side."""
    values = pixels if pixels.dtype == np.uint8 else (pixels.astype(np.float64) * 255).round().clip(0, 255)
    image = Image.fromarray(np.ascontiguousarray(values.transpose(1, 2, 0), dtype=np.uint8), "RGB")
    image.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "webp", quality=80, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
