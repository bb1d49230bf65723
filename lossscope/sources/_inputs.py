"""Which images and which captions are the same input, found without any model: by pixels, and by words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.datasets.base import Images, Split
from lossscope.text.vocabulary import tokenise

Progress = Callable[[str, int, int], None]
_AT_ONCE = 128  # images held at a time


def keys_of(split: Split, progress: Progress | None = None) -> Pair[Rows | None]:
    """Numbers of the images (N,) and captions (M,) of a split, equal where the inputs are; reads every image once.

    Images are equal by the bytes of what `take` gives, so after decoding and resizing. Captions are equal by the ids
    that the data set holds, or else as `caption_keys` has it.
    """
    captions = caption_keys(split.captions) if split.tokens is None else numbered(map(tuple, split.tokens))
    return Pair(image_keys(split.images, split.name, progress), captions)


def caption_keys(captions: Iterable[str]) -> Rows:
    """(M,) equal where the words are, whatever their case and the punctuation; texts without words by themselves."""
    return numbered(tuple(tokenise(caption)) or caption for caption in captions)


def image_keys(images: Images, name: str, progress: Progress | None = None) -> Rows:
    """(N,) equal where the arrays are, all of them where an item is several."""
    found: list[bytes] = []
    for start in range(0, len(images), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(images)), dtype=np.int64)
        items = images.take(rows)
        arrays = [items[key] for key in sorted(items)] if isinstance(items, Mapping) else [items]
        found += [_digest([array[place] for array in arrays]) for place in range(len(rows))]
        if progress:
            progress(f"comparing {name} images", len(found), len(images))
    return numbered(found)


def numbered(things: Iterable[Hashable]) -> Rows:
    """The place at which each thing was first seen, among different ones.

    >>> numbered(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(thing, len(seen)) for thing in things], dtype=np.int64)


def _digest(arrays: list[Any]) -> bytes:
    """16 bytes, so that two of a million different items are equal with a probability of 1e-27."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()
