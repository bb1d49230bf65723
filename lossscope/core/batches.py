"""Which items form a batch: a function of (seed, epoch) alone, so that any batch can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from lossscope.errors import InputError

from .class_batches import class_rounds, fill_batches
from .relations import Relations, as_relations, equal_places
from .shuffles import random_words, shuffle_rows
from .sides import plural
from .similarity import Mask
from .types import DIRECTIONS, MINED_NEGATIVES, Direction, MinedNegatives, Rows, SameImage, SamplingMode

Entries = tuple[Rows, Rows]  # rows and columns of entries of a matrix

_ONE_SET_MODES = ("classes", "views")
_GROUPED_MODES = ("images", "groups", "proxies")
_NO_ENTRIES: Entries = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Batch:
    """The rows of both sides of one batch: of images and captions, of queries and documents, of the items of one set.

    In mode `views` both sides are the rows of a split whose two sides are put together (SplitEmbeddings.joined).
    """

    images: Rows  # (b,) of the first side
    captions: Rows  # (m,) of the second; in mode `pairs` caption i belongs to image i; mined negatives come last
    mode: SamplingMode
    negative_of: Rows | None = None  # (n,) place in `images` of the query that each of n mined negatives belongs to
    own_negatives: bool = False  # whether a query sees its own mined negatives only, beside the positives of the batch

    @property
    def pairs(self) -> int:
        """B, the number of pairs: of the captions but for mined negatives."""
        return len(self.captions) - (0 if self.negative_of is None else len(self.negative_of))

    @property
    def is_one_set(self) -> bool:
        """Whether both sides are the same items."""
        return self.mode in _ONE_SET_MODES

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions that have queries: one of one set, and of items against class vectors."""
        return DIRECTIONS[:1] if self.is_one_set or self.mode == "proxies" else DIRECTIONS

    def entries(
        self,
        related: Relations | Rows,
        same_image: SameImage = "keep",
        queries: Rows | None = None,
        direction: Direction = "i2t",
    ) -> tuple[Entries, Entries]:
        """Return the positives of queries and what is left out; every other entry of S is a negative.

        Entries are (rows, columns), rows being places in `queries`. Masks of whole batches, of tiles and of samples are
        made of them.

        Args:
            related: positives of the split, or the image row of every caption.
            same_image: what another positive of the same item is, `keep`: a negative, as in every published loader
                (E7), or `mask`: left out; where a query has one positive, as in pairs and views.
            queries: (n,) places in the batch, in increasing order; None: all of them.
            direction: whether queries are of the first side.
        """
        relations, first, second = as_relations(related), self.images, self.captions
        if direction == "t2i":
            relations, first, second = relations.t(), second, first
        query_rows = np.arange(len(first), dtype=np.int64) if queries is None else queries
        local = np.arange(len(query_rows), dtype=np.int64)
        if self.mode in _GROUPED_MODES:
            return relations.entries(first[query_rows], second), self._out_of_sight(query_rows, direction)
        if self.mode == "classes":
            return relations.entries(first[query_rows], second), (local, query_rows)
        if self.mode == "views":
            positives, invalid = (local, self.partners()[query_rows]), (local, query_rows)
            if same_image == "mask":
                rows, columns = self.view_relations(relations)
                drawn = np.isin(rows, query_rows)
                rows, columns = np.searchsorted(query_rows, rows[drawn]), columns[drawn]
                invalid = np.concatenate([local, rows]), np.concatenate([query_rows, columns])
            return positives, invalid
        paired = query_rows < min(len(self.images), self.pairs)  # mined negatives, behind the pairs, have no positive
        positives, invalid = (local[paired], query_rows[paired]), self._out_of_sight(query_rows, direction)
        if same_image == "mask":
            rows, columns = relations.entries(first[query_rows], second)
            other = query_rows[rows] != columns
            hidden = zip(invalid, (rows[other], columns[other]), strict=True)
            invalid = tuple(np.concatenate(pair) for pair in hidden)  # type: ignore[assignment]
        return positives, invalid

    def mask(self, related: Relations | Rows, same_image: SameImage = "keep") -> Mask:
        """Return the mask of the first direction; arguments are those of `entries`."""
        match = torch.zeros(len(self.images), len(self.captions), dtype=torch.bool)
        valid = torch.ones_like(match)
        positives, invalid = self.entries(related, same_image)
        match[tuple(map(torch.from_numpy, positives))] = True
        valid[tuple(map(torch.from_numpy, invalid))] = False
        return Mask(match, valid)

    def partners(self) -> Rows:
        """Return the place (2b,) of the other view of each item, of mode `views`."""
        half = len(self.images) // 2
        return np.concatenate([np.arange(half, 2 * half), np.arange(half)])

    def view_relations(self, relations: Relations) -> tuple[Rows, Rows]:
        """Return the places of pairs of items of mode `views` that are known to be one thing, other than partners."""
        half, n = len(self.images) // 2, relations.first
        first, second = self.images[:half], self.images[half:] - n
        rows, columns = relations.entries(first, second)
        i, j = _equal_pairs(second)
        pairs = [(rows, columns + half), (columns + half, rows), _equal_pairs(first), (i + half, j + half)]
        all_pairs = np.unique(np.concatenate([np.stack(pair, 1) for pair in pairs]), axis=0)
        other = all_pairs[all_pairs[:, 1] != self.partners()[all_pairs[:, 0]]]
        return other[:, 0], other[:, 1]

    def _out_of_sight(self, queries: Rows, direction: Direction) -> Entries:
        """Return the mined negatives of other queries, where a query sees its own alone."""
        if not self.own_negatives or self.negative_of is None:
            return _NO_ENTRIES
        other = np.zeros((len(self.images), len(self.captions)), dtype=bool)
        other[:, self.pairs :] = np.arange(len(self.images))[:, None] != self.negative_of[None, :]
        rows, columns = np.nonzero((other if direction == "i2t" else other.T)[queries])
        return rows, columns


@dataclass(frozen=True)
class Sampling:
    """How a split is cut into batches. Raises InputError for a batch size below 2.

    Modes: `pairs` has one pair a row, all pairs shuffled once an epoch, and the mined negatives of its queries, where
    there are any. `single` has each image once an epoch, with one of its captions drawn anew, as the loaders of video
    models do. `images` has an image with all its captions; `groups` is its name for any two sides. `classes` has P
    classes of one labelled set with `per_class` items each. `views` has pairs, both of whose items are queries.
    `proxies` has items, each against the whole second side, as losses with class vectors compare them.
    """

    mode: SamplingMode = "pairs"
    batch_size: int | None = 128  # rows; of `images`: images; of `classes`: items; None: everything in one batch
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False  # leave out a last batch that is not full
    captions: Literal["all", "first"] = "all"  # all captions, or the first one of each image
    min_batch_size: int = 1  # leave out a last batch that is smaller; a single pair has no negative
    negatives: MinedNegatives = "batch"  # what mined negatives are candidates of
    mined: int | None = None  # mined negatives of a query that are taken, the first ones; None: all
    per_class: int = 4  # items of a class in a batch of mode `classes`

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 2:
            raise InputError(f"batch size must be at least 2 (a query needs a negative); got {self.batch_size}")
        if self.negatives not in MINED_NEGATIVES:
            raise InputError(f"negatives must be one of {', '.join(MINED_NEGATIVES)}; got {self.negatives!r}")
        if self.mined is not None and self.mined < 1:
            raise InputError(f"mined negatives of a query must be at least 1; got {self.mined}. Leave them out: none")
        if self.mode == "classes":
            self._require_classes()

    def caption_rows(self, related: Relations | Rows) -> Rows:
        """Return the pairs to sample from, in file order; of images and captions, the rows of captions."""
        relations = as_relations(related)
        if self.captions == "all":
            return np.arange(len(relations.positives), dtype=np.int64)
        return np.sort(np.unique(relations.positives[:, 0], return_index=True)[1]).astype(np.int64)

    def count(self, related: Relations | Rows) -> int:
        """Return the number of batches of one epoch."""
        relations = self.fitting(related)
        if self.mode == "classes" and self.batch_size is not None:
            return sum(1 for _ in self._class_batches(relations, 0))
        n, size = self._number_of_items(relations), self._full_size(relations)
        return n // size + int(not self.drop_last and n % size >= self.min_batch_size)

    def batches(self, related: Relations | Rows, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """Yield batches `start`, `start` + 1, ... of an epoch.

        Args:
            related: positives of the split, or the image row of every caption.
            epoch: from 0.
            start: number of the first batch.

        Raises:
            InputError: classes of a split that has no labels, or pairs of one that has only labels.
        """
        relations = self.fitting(related)
        if self.mode == "classes":
            for number, rows in enumerate(self._class_batches(relations, epoch)):
                if number >= start:
                    yield Batch(rows, rows, "classes")
            return
        pairs = self._draw_pairs(relations, epoch)
        n, size = self._number_of_items(relations), self._full_size(relations)
        shuffle = self.shuffle and self.batch_size is not None
        order = shuffle_rows(n, self.seed, epoch) if shuffle else np.arange(n, dtype=np.int64)
        if self.mode in _GROUPED_MODES and self.batch_size is None:
            if start < self.count(relations):
                ordered = pairs[np.argsort(relations.positives[pairs, 0], kind="stable")]
                first, second = np.unique(relations.positives[ordered, 0]), relations.positives[ordered, 1]
                yield self._with_mined(
                    relations, first.astype(np.int64), self._candidates(relations, second), self.mode
                )
            return
        groups = _group_by_first(pairs, relations.positives) if self.mode in _GROUPED_MODES else None
        for index in range(start, self.count(relations)):
            part = order[index * size : (index + 1) * size]
            if groups is None:
                yield self._batch_of_pairs(relations, pairs[part])
            else:
                first, members = groups
                second = relations.positives[np.concatenate([members[i] for i in part]), 1]
                yield self._with_mined(relations, first[part], self._candidates(relations, second), self.mode)

    def _candidates(self, relations: Relations, positives: Rows) -> Rows:
        """Return the second side of a batch: each positive of its queries once, or in mode `proxies` the whole side."""
        if self.mode == "proxies":
            return np.arange(relations.second, dtype=np.int64)
        return positives if relations.has_owners else _unique(positives)

    def _batch_of_pairs(self, relations: Relations, pairs: Rows) -> Batch:
        first, second = (relations.positives[pairs, side] for side in (0, 1))
        if self.mode == "views":
            both = np.concatenate([first, relations.first + second])
            return Batch(both, both, "views")
        return self._with_mined(relations, first, second, "pairs")

    def _with_mined(self, relations: Relations, first: Rows, second: Rows, mode: SamplingMode) -> Batch:
        """Return a batch with the mined negatives of its queries behind their positives, unless they are left out."""
        if relations.negatives is None or self.negatives == "none":
            return Batch(first, second, mode)
        mined, owners = relations.mined(first, self.mined)
        return Batch(first, np.concatenate([second, mined]), mode, owners, self.negatives == "own")

    def _class_batches(self, relations: Relations, epoch: int) -> Iterator[Rows]:
        """Yield the rows of each batch of mode `classes`."""
        assert relations.labels is not None
        if self.batch_size is None:
            yield np.arange(relations.first, dtype=np.int64)
            return
        rounds = class_rounds(relations.labels, self.per_class, self.seed if self.shuffle else None, epoch)
        yield from fill_batches(rounds, self.batch_size // self.per_class, self.drop_last)

    def fitting(self, related: Relations | Rows) -> Relations:
        """Return the relations. Raises InputError for another kind than the mode is for, and for too few negatives."""
        relations = as_relations(related)
        k = None if relations.negatives is None else relations.negatives.shape[1]
        if self.mined is not None and k is not None and self.mined > k:
            raise InputError(f"--mined must be at most the {k} mined negatives of a query; got {self.mined}")
        if self.mode == "proxies" and relations.negatives is not None and self.negatives != "none":
            second = plural(str(relations.sides.second))
            raise InputError(f"--sampling proxies has all {second} as candidates, mined or not: add --negatives none")
        if relations.one_set == (self.mode == "classes"):
            return relations
        name = plural(relations.sides.first)
        if relations.one_set:
            raise InputError(
                f"--sampling must be classes for {name} of one labelled set, which have no pairs; got {self.mode}"
            )
        raise InputError(
            f"--sampling classes is for one labelled set; got {relations.sides.text} pairs. Take pairs, groups or views"
        )

    def _require_classes(self) -> None:
        if self.per_class < 2:
            raise InputError(f"items of a class must be at least 2 (a query needs a positive); got {self.per_class}")
        if self.batch_size is not None and (self.batch_size % self.per_class or self.batch_size <= self.per_class):
            raise InputError(
                f"batch size must be a multiple of --per-class {self.per_class}, 2 classes or more; "
                f"got {self.batch_size}"
            )

    def _draw_pairs(self, relations: Relations, epoch: int) -> Rows:
        """Return the pairs of an epoch: all, or in mode `single` one drawn for each item of the first side."""
        pairs = self.caption_rows(relations)
        if self.mode != "single":
            return pairs
        _, members = _group_by_first(pairs, relations.positives)
        raw = random_words(len(members), self.seed, (2 << 32) + epoch) >> np.uint64(1)
        drawn = [group[int(number) % len(group)] for group, number in zip(members, raw, strict=True)]
        return np.array(drawn, dtype=np.int64)

    def _number_of_items(self, relations: Relations) -> int:
        """Return what the batch size counts: pairs of modes `pairs` and `views`, else items of the first side."""
        if relations.one_set:
            return relations.first
        rows = self.caption_rows(relations)
        if self.mode in ("pairs", "views"):
            return len(rows)
        return int((np.bincount(relations.positives[rows, 0]) > 0).sum())

    def _full_size(self, relations: Relations) -> int:
        return max(self._number_of_items(relations), 1) if self.batch_size is None else self.batch_size


def _group_by_first(pairs: Rows, positives: Rows) -> tuple[Rows, list[Rows]]:
    """Return the items of the first side that have pairs, in row order, and the pairs of each."""
    order = pairs[np.argsort(positives[pairs, 0], kind="stable")]
    first, starts = np.unique(positives[order, 0], return_index=True)
    return first.astype(np.int64), np.split(order, starts[1:])


def _unique(rows: Rows) -> Rows:
    """Return each row once, in the order of first appearance."""
    return rows[np.sort(np.unique(rows, return_index=True)[1])]


def _equal_pairs(rows: Rows) -> tuple[Rows, Rows]:
    """Return the places (i, j), i ≠ j, of equal rows."""
    i, j = equal_places(rows, rows)
    return i[i != j], j[i != j]
