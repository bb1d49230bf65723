"""Which items of the second side are positives of which items of the first, and which were mined as negatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .sides import IMAGE_TEXT, Sides, plural
from .types import Rows

NONE = -1  # in rows of negatives: fewer than the others have


@dataclass(frozen=True, eq=False)
class Relations:
    """Positives between N items of the first side and M of the second, or within one set of labelled items.

    Pair i is row i of `positives`, each pair once, which readers of files make sure of. Raises InputError for rows out
    of range, and labels that are not one per item.
    """

    first: int  # N
    second: int  # M; of one set: N
    positives: Rows  # (n, 2) rows of the first and of the second side; of one set: (0, 2), its labels say it
    sides: Sides = IMAGE_TEXT
    labels: Rows | None = None  # (N,) class of each item of one set
    negatives: Rows | None = None  # (N, k) rows of the second side that were mined as negatives; -1: none

    def __post_init__(self) -> None:
        if self.sides.is_one_set != (self.labels is not None):
            raise InputError(f"labels must be given for one set, and only for that; sides are {self.sides.text}")
        if self.labels is not None and (self.labels.shape != (self.first,) or self.second != self.first):
            raise InputError(f"labels must be {self.first}, one per item; got {self.labels.shape}")
        self._require_pairs()
        self._require_negatives()

    @classmethod
    def of_captions(cls, caption_image: Rows, images: int) -> Relations:
        """Return the relations of images and captions: each caption has one image."""
        captions = np.arange(len(caption_image), dtype=np.int64)
        return cls(images, len(caption_image), np.stack([caption_image, captions], 1))

    @classmethod
    def of_labels(cls, labels: Rows, name: str = "item") -> Relations:
        """Return the relations of one set: items of one label are positives of each other."""
        return cls(len(labels), len(labels), np.zeros((0, 2), np.int64), Sides(name, None), labels)

    def t(self) -> Relations:
        """Return the positives with the second side's items as queries, without mined negatives; one set as it is."""
        if self.one_set:
            return self
        return Relations(self.second, self.first, self.positives[:, ::-1], self.sides)

    @property
    def one_set(self) -> bool:
        """Whether queries and candidates are the items of one set; an item is no candidate of itself."""
        return self.labels is not None

    @cached_property
    def caption_image(self) -> Rows:
        """(M,) row of the first side that each item of the second belongs to.

        Raises InputError unless each item of the second side is a positive of exactly one of the first, in row order.
        """
        if self.has_owners:
            return np.ascontiguousarray(self.positives[:, 0])
        first, second = ("item", "item") if self.sides.second is None else (self.sides.first, self.sides.second)
        raise InputError(
            f"this needs {plural(second)} that belong to one {first} each; here {plural(first)} and "
            f"{plural(second)} have other relations"
        )

    @cached_property
    def has_owners(self) -> bool:
        """Whether each item of the second side is a positive of exactly one of the first, as captions of images are."""
        return self.labels is None and np.array_equal(self.positives[:, 1], np.arange(self.second))

    def is_positive(self, first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
        """Return (b, c) whether items of the second side are positives of items of the first; of one set by label."""
        if self.labels is not None:
            same: npt.NDArray[np.bool_] = self.labels[first][:, None] == self.labels[second][None, :]
            same &= first[:, None] != second[None, :]
            return same
        if self.has_owners:
            owners: npt.NDArray[np.bool_] = first[:, None] == self.caption_image[second][None, :]
            return owners
        match = np.zeros((len(first), len(second)), dtype=bool)
        match[self.entries(first, second)] = True
        return match

    def are_positive(self, first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
        """Return (n,) whether item `second[i]` is a positive of item `first[i]`; of one set by label."""
        if self.labels is not None:
            return np.asarray((self.labels[first] == self.labels[second]) & (first != second))
        if self.has_owners:
            return np.asarray(self.caption_image[second] == first)
        known = self.positives[:, 0] * self.second + self.positives[:, 1]
        return np.isin(first * self.second + second, known)

    def entries(self, first: Rows, second: Rows) -> tuple[Rows, Rows]:
        """Return the places (row, column) of the positives among items, in order of rows, then columns."""
        if self.labels is not None:
            rows, columns = equal_places(self.labels[first], self.labels[second])
            other = first[rows] != second[columns]
            return rows[other], columns[other]
        starts, positives = self._lists
        rows, within = _ranges(starts[first + 1] - starts[first])
        matches, columns = equal_places(positives[starts[first][rows] + within], second)
        rows = rows[matches]
        by_row = np.lexsort((columns, rows))
        return rows[by_row], columns[by_row]

    def mined(self, first: Rows, most: int | None = None) -> tuple[Rows, Rows]:
        """Return the mined negatives of items of the first side, and the place in `first` that each belongs to.

        Args:
            first: (b,) rows.
            most: negatives of each that are taken, the first ones; None: all.
        """
        if self.negatives is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = self.negatives[first] if most is None else self.negatives[first, :most]
        present = rows != NONE
        return rows[present], np.nonzero(present)[0].astype(np.int64)

    @cached_property
    def number_of_classes(self) -> int:
        """Number of different labels of one set; 0 of two sides."""
        return 0 if self.labels is None else len(np.unique(self.labels))

    @cached_property
    def shared_classes(self) -> int:
        """Number of labels that two items or more of one set have."""
        return 0 if self.labels is None else int((np.unique(self.labels, return_counts=True)[1] > 1).sum())

    @cached_property
    def number_of_positives(self) -> Rows:
        """(N,) number of positives of each item of the first side."""
        if self.labels is None:
            return np.bincount(self.positives[:, 0], minlength=self.first).astype(np.int64)
        _, inverse, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        return (counts[inverse] - 1).astype(np.int64)

    @cached_property
    def _lists(self) -> tuple[Rows, Rows]:
        """(N + 1,) where the positives of each item of the first side begin in a list of rows, and the list."""
        order = np.argsort(self.positives[:, 0], kind="stable")
        starts = np.searchsorted(self.positives[order, 0], np.arange(self.first + 1)).astype(np.int64)
        return starts, self.positives[order, 1]

    def _require_pairs(self) -> None:
        if self.labels is not None:
            return
        pairs = self.positives
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InputError(f"positives must be (n, 2) rows of both sides; got {pairs.shape} of {pairs.dtype}")
        for column, size, name in ((0, self.first, self.sides.first), (1, self.second, str(self.sides.second))):
            _require_range(pairs[:, column], size, f"{plural(name)} of positives")

    def _require_negatives(self) -> None:
        if self.negatives is None:
            return
        if self.labels is not None or self.negatives.ndim != 2 or len(self.negatives) != self.first:
            what = plural(self.sides.first)
            raise InputError(f"negatives must be a row for each of {self.first} {what}; got {self.negatives.shape}")
        _require_range(self.negatives[self.negatives != NONE], self.second, "negatives")


def as_relations(related: Relations | Rows) -> Relations:
    """Return relations as they are, and the image rows of captions (M,) as relations."""
    if isinstance(related, Relations):
        return related
    return Relations.of_captions(related, int(related.max(initial=-1)) + 1)


def equal_places(wanted: Rows, values: Rows) -> tuple[Rows, Rows]:
    """Return all places (i, j) with wanted[i] = values[j], in order of i, then j."""
    order = np.argsort(values, kind="stable").astype(np.int64)
    ordered = values[order]
    low = np.searchsorted(ordered, wanted, "left")
    rows, within = _ranges(np.searchsorted(ordered, wanted, "right") - low)
    return rows, order[low[rows] + within]


def _ranges(sizes: Rows) -> tuple[Rows, Rows]:
    """Return i repeated sizes[i] times, and 0..sizes[i]-1 beside it."""
    rows = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return rows, np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _require_range(rows: Rows, size: int, what: str) -> None:
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= size):
        raise InputError(f"{what} must be rows 0..{size - 1}; got {int(rows.min())}..{int(rows.max())}")
