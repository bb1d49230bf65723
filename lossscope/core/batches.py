"""Which items meet in a batch: a function of (seed, epoch) and of nothing else, so that any batch can be remade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from lossscope.errors import InputError

from .similarity import Mask, SameImage, group_mask, pair_mask

Rows = npt.NDArray[np.int64]
SamplingMode = Literal["pairs", "images", "single"]


def shuffle_rows(n: int, seed: int, epoch: int) -> Rows:
    """A permutation of 0..n-1 from the raw counter-based stream keyed by (seed, epoch); the same on any machine."""
    keys = np.random.Philox(key=np.array([seed & 0xFFFFFFFFFFFFFFFF, epoch], dtype=np.uint64)).random_raw(n)
    return np.argsort(keys, kind="stable").astype(np.int64)


@dataclass(frozen=True)
class Batch:
    """Rows of one batch: images (b,) and captions (m,); of `pairs` caption i goes with image i, b = m."""

    images: Rows
    captions: Rows
    mode: SamplingMode

    def mask(self, caption_image: Rows, same_image: SameImage = "keep") -> Mask:
        """The i2t mask of the batch, from the image row of every caption of the split."""
        if self.mode != "images":
            return pair_mask(torch.from_numpy(self.images), same_image)
        return group_mask(torch.from_numpy(self.images), torch.from_numpy(caption_image[self.captions]))


@dataclass(frozen=True)
class Sampling:
    """How a split is cut into batches.

    how: `pairs` (one caption per row, all pairs shuffled once per epoch), `single` (each image once an epoch, with one
    of its captions drawn anew: the loader of video models) or `images` (an image with all its captions; batch_size
    counts images). least: a last batch of fewer is left out (one alone has no negative). batch_size None: everything
    in one batch, in file order. captions: all, or the first of each image. Raises InputError for a batch size below 2.
    """

    mode: SamplingMode = "pairs"
    batch_size: int | None = 128
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    captions: Literal["all", "first"] = "all"
    min_batch_size: int = 1

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 2:
            raise InputError(f"batch size must be at least 2 (a query needs a negative); got {self.batch_size}")

    def rows(self, caption_image: Rows) -> Rows:
        """Captions that take part, in file order."""
        if self.captions == "all":
            return np.arange(len(caption_image), dtype=np.int64)
        return np.sort(np.unique(caption_image, return_index=True)[1]).astype(np.int64)

    def count(self, caption_image: Rows) -> int:
        """Number of batches of one epoch."""
        n, size = self._units(caption_image), self._size(caption_image)
        return n // size + int(not self.drop_last and n % size >= self.min_batch_size)

    def batches(self, caption_image: Rows, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """Batches `start`, `start` + 1, ... of an epoch."""
        captions = self._drawn(caption_image, epoch)
        n, size = self._units(caption_image), self._size(caption_image)
        mixed = self.shuffle and self.batch_size is not None
        order = shuffle_rows(n, self.seed, epoch) if mixed else np.arange(n, dtype=np.int64)
        groups = _by_image(captions, caption_image) if self.mode == "images" else None
        for index in range(start, self.count(caption_image)):
            part = order[index * size : (index + 1) * size]
            if groups is None:
                rows = captions[part]
                yield Batch(caption_image[rows], rows, "pairs")
            else:
                images, members = groups
                yield Batch(images[part], np.concatenate([members[i] for i in part]), "images")

    def _drawn(self, caption_image: Rows, epoch: int) -> Rows:
        """Captions of an epoch: all that take part, or one of each image."""
        captions = self.rows(caption_image)
        if self.mode != "single":
            return captions
        key = np.array([self.seed & 0xFFFFFFFFFFFFFFFF, (2 << 32) + epoch], dtype=np.uint64)
        _, members = _by_image(captions, caption_image)
        raw = np.random.Philox(key=key).random_raw(len(members)) >> np.uint64(1)
        drawn = [own[int(number) % len(own)] for own, number in zip(members, raw, strict=True)]
        return np.array(drawn, dtype=np.int64)

    def _units(self, caption_image: Rows) -> int:
        rows = self.rows(caption_image)
        return len(rows) if self.mode == "pairs" else len(np.unique(caption_image[rows]))

    def _size(self, caption_image: Rows) -> int:
        return max(self._units(caption_image), 1) if self.batch_size is None else self.batch_size


def _by_image(captions: Rows, caption_image: Rows) -> tuple[Rows, list[Rows]]:
    """Images that have captions, in row order, and the caption rows of each."""
    order = captions[np.argsort(caption_image[captions], kind="stable")]
    images, starts = np.unique(caption_image[order], return_index=True)
    return images.astype(np.int64), np.split(order, starts[1:])
