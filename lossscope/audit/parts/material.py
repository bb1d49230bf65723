"""All that an audit knows of two sides: ids, positives, texts, models, pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.normal_form import normal_forms
from lossscope.core.relations import NONE
from lossscope.core.types import Progress, Rows
from lossscope.datasets.base import Images, Split, Texts

from .items import AuditedItems
from .model_view import ModelView
from .picture_hashes import hash_pictures
from .query_texts import QueryTexts
from .text_space import TextSpace


@dataclass(eq=False)
class Material(AuditedItems):
    """What is known of the N items of the first side and the M of the second."""

    models: tuple[ModelView, ...] = ()  # of the same items
    split: Split | None = None  # with texts, and pictures
    training: Split | None = None  # whose texts the spaces of words are fitted on; None: those of the split

    @property
    def first_texts(self) -> list[str] | None:
        """(N,) texts of the first side, where it has texts."""
        items = None if self.split is None else self.split.images
        return list(items.texts) if isinstance(items, Texts) else None

    @property
    def pictures(self) -> Images:
        """The first side's pictures. Raises Missing where there are none."""
        shape: Any = () if self.split is None or isinstance(self.split.images, Texts) else self.split.images.shape
        if self.split is None or not (isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3):
            raise Missing("it has no pictures; name the data with --data")
        return self.split.images

    @cached_property
    def texts(self) -> TextSpace:
        """The texts of both sides as vectors. Raises Missing where there are none."""
        if self.split is None or not any(self.split.captions):
            raise Missing("it has no texts; name the data with --data")
        learn = self.training or self.split
        return TextSpace.fit(_groups(learn), self.split.captions, self.first_texts, self.progress)

    @cached_property
    def query_texts(self) -> QueryTexts:
        """The texts of each query together. Raises Missing where there are none."""
        return QueryTexts(self.texts, self.positives_of_queries, self.positives_of_candidates)

    @cached_property
    def texts_of_queries(self) -> Rows:
        """(N, k) rows of the texts of each query that have known words; −1 for the others. Raises Missing."""
        rows = self.positives_of_queries
        return np.where((rows != NONE) & self.texts.is_known[rows], rows, NONE)

    @cached_property
    def text_keys(self) -> Rows:
        """(M,) numbers of the second side's texts, equal where the words are; −1 of an empty one."""
        if self.split is None:
            raise Missing("it has no texts; name the data with --data")
        numbers: dict[str, int] = {}
        texts = normal_forms(self.split.captions)
        return np.array([numbers.setdefault(text, len(numbers)) if text else NONE for text in texts], np.int64)

    @cached_property
    def picture_hashes(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """(N, 96) bits of the perceptual hash of each picture, and (N, 816) thumbnails. Raises Missing without any."""
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
        items = AuditedItems(first.relations, list(first.image_ids), list(first.caption_ids), progress)
        views = tuple(ModelView.of(one, items, top) for one in sources)
        return cls(items.relations, items.image_ids, items.caption_ids, progress, views, split, training)


def _groups(split: Split) -> list[list[str]]:
    """Texts that say the same thing: those of one item of the first side, its own among them; each other text alone.

    Of one set, those of one label.
    """
    relations = split.relations
    if relations.labels is not None:
        order = np.argsort(relations.labels, kind="stable")
        ends = np.nonzero(np.diff(relations.labels[order]))[0] + 1
        return [[split.captions[row] for row in rows] for rows in np.split(order, ends)]
    own = split.images.texts if isinstance(split.images, Texts) else None
    groups = [[] if own is None else [own[row]] for row in range(len(split.image_ids))]
    for first, second in relations.positives.tolist():
        groups[first].append(split.captions[second])
    alone = np.setdiff1d(np.arange(relations.second), relations.positives[:, 1])
    return [*(group for group in groups if group), *([split.captions[row]] for row in alone.tolist())]
