"""Which images and captions form a batch: a function of (seed, epoch) alone, so that any batch can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from lossscope.errors import InputError

from .similarity import Mask, group_mask, pair_mask
from .types import Rows, SameImage, SamplingMode


def shuffle_rows(n: int, seed: int, epoch: int) -> Rows:
    """Return a permutation of 0..n-1 from the counter-based stream of (seed, epoch); the same on any machine."""
    keys = np.random.Philox(key=np.array([seed & 0xFFFFFFFFFFFFFFFF, epoch], dtype=np.uint64)).random_raw(n)
    return np.argsort(keys, kind="stable").astype(np.int64)


@dataclass(frozen=True)
class Batch:
    """The rows of the images and captions of one batch."""

    images: Rows  # (b,)
    captions: Rows  # (m,); in mode `pairs` caption i belongs to image i and m = b
    mode: SamplingMode

    def mask(self, caption_image: Rows, same_image: SameImage = "keep") -> Mask:
        """Return the i2t mask of the batch.

        Args:
            caption_image: image row of every caption of the split.
            same_image: what another caption of the same image is, see `pair_mask`; only for pairs.
        """
        if self.mode != "images":
            return pair_mask(torch.from_numpy(self.images), same_image)
        return group_mask(torch.from_numpy(self.images), torch.from_numpy(caption_image[self.captions]))


@dataclass(frozen=True)
class Sampling:
    """How a split is cut into batches. Raises InputError for a batch size below 2.

    Modes: `pairs` has one caption a row, all pairs shuffled once an epoch. `single` has each image once an epoch, with
    one of its captions drawn anew, as the loaders of video models do. `images` has an image with all its captions.
    """

    mode: SamplingMode = "pairs"
    batch_size: int | None = 128  # rows; of `images`: images; None: everything in one batch, in file order
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False  # leave out a last batch that is not full
    captions: Literal["all", "first"] = "all"  # all captions, or the first one of each image
    min_batch_size: int = 1  # leave out a last batch that is smaller; a single pair has no negative

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 2:
            raise InputError(f"batch size must be at least 2 (a query needs a negative); got {self.batch_size}")

    def caption_rows(self, caption_image: Rows) -> Rows:
        """Return the rows of the captions to sample from, in file order."""
        if self.captions == "all":
            return np.arange(len(caption_image), dtype=np.int64)
        return np.sort(np.unique(caption_image, return_index=True)[1]).astype(np.int64)

    def count(self, caption_image: Rows) -> int:
        """Return the number of batches of one epoch."""
        n, size = self._number_of_items(caption_image), self._full_size(caption_image)
        return n // size + int(not self.drop_last and n % size >= self.min_batch_size)

    def batches(self, caption_image: Rows, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """Yield batches `start`, `start` + 1, ... of an epoch."""
        captions = self._draw_captions(caption_image, epoch)
        n, size = self._number_of_items(caption_image), self._full_size(caption_image)
        shuffle = self.shuffle and self.batch_size is not None
        order = shuffle_rows(n, self.seed, epoch) if shuffle else np.arange(n, dtype=np.int64)
        groups = _group_by_image(captions, caption_image) if self.mode == "images" else None
        for index in range(start, self.count(caption_image)):
            part = order[index * size : (index + 1) * size]
            if groups is None:
                rows = captions[part]
                yield Batch(caption_image[rows], rows, "pairs")
            else:
                images, members = groups
                yield Batch(images[part], np.concatenate([members[i] for i in part]), "images")

    def _draw_captions(self, caption_image: Rows, epoch: int) -> Rows:
        """Return the captions of an epoch: all rows, or in mode `single` one drawn for each image."""
        captions = self.caption_rows(caption_image)
        if self.mode != "single":
            return captions
        key = np.array([self.seed & 0xFFFFFFFFFFFFFFFF, (2 << 32) + epoch], dtype=np.uint64)
        _, members = _group_by_image(captions, caption_image)
        raw = np.random.Philox(key=key).random_raw(len(members)) >> np.uint64(1)
        drawn = [group[int(number) % len(group)] for group, number in zip(members, raw, strict=True)]
        return np.array(drawn, dtype=np.int64)

    def _number_of_items(self, caption_image: Rows) -> int:
        """Return what the batch size counts: captions of mode `pairs`, else images."""
        rows = self.caption_rows(caption_image)
        return len(rows) if self.mode == "pairs" else len(np.unique(caption_image[rows]))

    def _full_size(self, caption_image: Rows) -> int:
        return max(self._number_of_items(caption_image), 1) if self.batch_size is None else self.batch_size


def _group_by_image(captions: Rows, caption_image: Rows) -> tuple[Rows, list[Rows]]:
    """Return the images that have captions, in row order, and the caption rows of each."""
    order = captions[np.argsort(caption_image[captions], kind="stable")]
    images, starts = np.unique(caption_image[order], return_index=True)
    return images.astype(np.int64), np.split(order, starts[1:])
