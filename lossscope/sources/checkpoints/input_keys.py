"""Which images and which captions are the same input? Decided without a model: by pixels, and by words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from lossscope.core.pair import Pair
from lossscope.core.types import Progress, Rows
from lossscope.datasets.base import Images, Split, Texts
from lossscope.text.word_tokenisers import tokenise

_BLOCK = 128  # images read at a time


def input_keys(split: Split, progress: Progress | None = None) -> Pair[Rows | None]:
    """Return numbers of the images (N,) and captions (M,) of a split, equal where the inputs are.

    Every image is read once. Images are equal when the bytes of `take` are, that is after decoding and resizing.
    Captions are equal when their token ids are, where the data set has ids, else when `caption_keys` are. Texts of the
    first side are compared as captions are, with numbers that captions share.
    """
    if isinstance(split.images, Texts):
        keys = caption_keys([*split.images.texts, *split.captions])
        return Pair(keys[: len(split.images)], keys[len(split.images) :])
    captions = caption_keys(split.captions) if split.tokens is None else number_values(map(tuple, split.tokens))
    return Pair(image_keys(split.images, split.name, progress), captions)


def caption_keys(captions: Iterable[str]) -> Rows:
    """Return numbers (M,), equal where the words are, regardless of case and punctuation.

    Captions without words are equal only when their texts are.
    """
    return number_values(tuple(tokenise(caption)) or caption for caption in captions)


def image_keys(images: Images, name: str, progress: Progress | None = None) -> Rows:
    """Return numbers (N,), equal where the arrays are; all arrays of an item that has several."""
    digests: list[bytes] = []
    for start in range(0, len(images), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(images)), dtype=np.int64)
        items = images.take(rows)
        arrays = [items[key] for key in sorted(items)] if isinstance(items, Mapping) else [items]
        digests += [_digest([array[index] for array in arrays]) for index in range(len(rows))]
        if progress:
            progress(f"comparing {name} images", len(digests), len(images))
    return number_values(digests)


def number_values(values: Iterable[Hashable]) -> Rows:
    """Return the number of each value, numbered in the order of their first appearance.

    >>> number_values(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _digest(arrays: list[Any]) -> bytes:
    """Return 16 bytes of a hash: two of a million different items collide with a probability of 1e-27."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
