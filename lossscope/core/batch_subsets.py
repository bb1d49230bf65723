"""Batches without some of their items: everything else stays where it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .batches import Batch
from .types import Rows

Kept = npt.NDArray[np.bool_]


def keep_items(batch: Batch, first: Kept, second: Kept) -> Batch | None:
    """Return a batch with those of its items that are kept; None where fewer than two are left of a side.

    A pair is kept where both of its items are, and a mined negative where it and its query are.

    Args:
        batch: of any mode.
        first: (N,) which items of the first side are kept.
        second: (M,) which of the second; of one set the same.
    """
    if batch.mode == "views":
        half = len(batch.images) // 2
        pairs = first[batch.images[:half]] & second[batch.images[half:] - len(first)]
        both = batch.images[np.concatenate([pairs, pairs])]
        return replace(batch, images=both, captions=both) if pairs.sum() > 1 else None
    if batch.mode == "classes":
        items = batch.images[first[batch.images]]
        return replace(batch, images=items, captions=items) if len(items) > 1 else None
    plain, mined = batch.captions[: batch.pairs], batch.captions[batch.pairs :]
    if batch.mode in ("pairs", "single"):
        images = captions = first[batch.images] & second[plain]
    else:
        images, captions = first[batch.images], second[plain]
    if images.sum() < 2 or captions.sum() < 2:
        return None
    left, negative_of = _keep_mined(batch, images, mined, second)
    return replace(
        batch, images=batch.images[images], captions=np.concatenate([plain[captions], left]), negative_of=negative_of
    )


def _keep_mined(batch: Batch, images: Kept, mined: Rows, second: Kept) -> tuple[Rows, Rows | None]:
    """Return the mined negatives that are kept, and the new place of the query of each."""
    if batch.negative_of is None:
        return mined, None
    kept = second[mined] & images[batch.negative_of]
    position = np.cumsum(images) - 1
    return mined[kept], position[batch.negative_of[kept]].astype(np.int64)
