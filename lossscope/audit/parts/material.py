"""All that an audit knows of two sides: ids, positives, texts, models, pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE, Relations
from lossscope.core.types import Progress, Rows
from lossscope.datasets.base import Images, Split, Texts

from ..search.list_lengths import default_top
from ..types import NotKnown
from .model_view import ModelView
from .picture_hashes import hash_pictures
from .text_space import TextSpace, normal_text

MOST_REFERENCES = 16  # positives of an item that a candidate is compared with, the first ones


@dataclass(eq=False)
class Material:
    """What is known of the N items of the first side and the M of the second.

    Raises InputError for models of other items.
    """

    relations: Relations
    image_ids: list[str]  # N ids of the first side
    caption_ids: list[str]  # M ids of the second
    models: tuple[ModelView, ...] = ()  # of the same items
    split: Split | None = None  # with texts, and pictures
    training: Split | None = None  # whose texts the spaces of words are fitted on; None: those of the split
    progress: Progress | None = None

    @property
    def first_texts(self) -> list[str] | None:
        """(N,) texts of the first side, where it has texts."""
        items = None if self.split is None else self.split.images
        return list(items.texts) if isinstance(items, Texts) else None

    @property
    def pictures(self) -> Images:
        """The first side's pictures. Raises NotKnown where there are none."""
        shape: Any = () if self.split is None or isinstance(self.split.images, Texts) else self.split.images.shape
        if self.split is None or not (isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3):
            raise NotKnown("it has no pictures; name the data with --data")
        return self.split.images

    @cached_property
    def positives_of_queries(self) -> Rows:
        """(N, k) positives of each item of the first side, at most 16; −1 where it has fewer."""
        return _lists(self.relations)

    @cached_property
    def positives_of_candidates(self) -> Rows:
        """(M, k) items of the first side that have each item of the second as a positive, at most 16; −1: fewer."""
        return _lists(self.relations.t())

    @cached_property
    def texts(self) -> TextSpace:
        """The texts of both sides as vectors. Raises NotKnown where there are none."""
        if self.split is None or not any(self.split.captions):
            raise NotKnown("it has no texts; name the data with --data")
        learn = self.training or self.split
        return TextSpace.fit(_groups(learn), self.split.captions, self.first_texts, self.progress)

    @cached_property
    def text_keys(self) -> Rows:
        """(M,) numbers of the second side's texts, equal where the words are."""
        if self.split is None:
            raise NotKnown("it has no texts; name the data with --data")
        numbers: dict[str, int] = {}
        texts = map(normal_text, self.split.captions)
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)

    @cached_property
    def picture_hashes(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """(N, 96) bits of the perceptual hash of each picture, and (N, 816) thumbnails. Raises NotKnown where there are none."""
        return hash_pictures(self.pictures, self.progress)

    @classmethod
    def of(
        cls,
        sources: tuple[SplitEmbeddings, ...],
        split: Split | None,
        training: Split | None = None,
        top: int | None = None,
        progress: Progress | None = None,
    ) -> Material:
        """Put together what sources and data know of the same items.

        Raises InputError where they are of different items.
        """
        first: Any = split if split is not None else sources[0]
        material = cls(first.relations, list(first.image_ids), list(first.caption_ids), (), split, training, progress)
        length = top or default_top(first.relations)
        material.models = tuple(ModelView.of(one, material, length) for one in sources)
        return material


def _lists(relations: Relations) -> Rows:
    """(N, k) positives of each item of the first side; −1 where it has fewer."""
    if relations.labels is not None:
        return _same_label(relations.labels)
    pairs = relations.positives[np.argsort(relations.positives[:, 0], kind="stable")]
    counts = np.bincount(pairs[:, 0], minlength=relations.first)
    place = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(min(counts.max(initial=0), MOST_REFERENCES))
    lists = np.full((relations.first, max(width, 1)), NONE, np.int64)
    kept = place < width
    lists[pairs[kept, 0], place[kept]] = pairs[kept, 1]
    return lists


def _same_label(labels: Rows) -> Rows:
    """(N, k) further items of each item's label."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    start, stop = np.searchsorted(ordered, labels, "left"), np.searchsorted(ordered, labels, "right")
    width = int(min((stop - start).max(initial=1) - 1, MOST_REFERENCES))
    lists = np.full((len(labels), max(width, 1)), NONE, np.int64)
    own = np.empty(len(labels), np.int64)
    own[order] = np.arange(len(labels))
    for k in range(width):  # the k-th neighbour behind it, round the class
        size = stop - start
        rows = start + (own - start + 1 + k) % size
        lists[:, k] = np.where(k + 1 < size, order[np.minimum(rows, len(labels) - 1)], NONE)
    return lists


def _groups(split: Split) -> list[list[str]]:
    """Texts that say the same thing: those of one item of the first side, its own among them."""
    owned = isinstance(split.images, Texts)
    groups = [[split.images.texts[row]] if owned else [] for row in range(len(split.image_ids))]  # type: ignore[attr-defined]
    for first, second in split.relations.positives.tolist():
        groups[first].append(split.captions[second])
    return [group for group in groups if group]
