"""Rows of one split, of a file or of a data set of two texts, read in blocks as often as they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from lossscope.errors import InputError

from ..base import Rows, Split, Texts
from .held_out import HeldOut
from .row_block import RowBlock, TextLists
from .row_files import RowFiles

_ROWS = 1024  # of a block
Only = Collection[tuple[int, int]] | None  # keys of the blocks that are read; None: all


class RowSource(Protocol):
    """Rows that can be read again: blocks have the same keys and rows every time."""

    @property
    def size(self) -> int:
        """Bytes that are read; 0 where that is not known."""

    def blocks(self, only: Only = None) -> Iterator[RowBlock]:
        """Yield the rows in blocks; of blocks that are not among `only` none."""


@runtime_checkable
class RowDataset(Protocol):
    """A data set that is read from files of rows."""

    def row_source(self, name: str) -> RowSource:
        """Return the rows of a split. Raises InputError, listing the splits, for another name."""


@dataclass(frozen=True)
class CutRows:
    """The rows of one split of files that are cut by a hash."""

    files: RowFiles
    cut: HeldOut
    name: str

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return self.files.size

    def blocks(self, only: Only = None) -> Iterator[RowBlock]:
        """Yield the rows in blocks."""
        return self.cut.blocks(self.files.blocks(only), self.name)


@dataclass(frozen=True)
class SplitRows:
    """A split of two texts as rows: one a query, with all its positives and negatives.

    Raises InputError for a split of anything else.
    """

    split: Split
    size: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.split.images, Texts):
            raise InputError(
                f"split {self.split.name!r} must be of two texts, such as queries and documents; it is not"
            )

    def blocks(self, only: Only = None) -> Iterator[RowBlock]:
        """Yield the rows in blocks."""
        for number, start in enumerate(range(0, len(self.split.images), _ROWS)):
            if only is None or (0, number) in only:
                yield self._block(number, range(start, min(start + _ROWS, len(self.split.images))))

    @cached_property
    def _pairs(self) -> Rows:
        """(n, 2) positives in the order of their queries."""
        pairs = self.split.relations.positives
        return pairs[pairs[:, 0].argsort(kind="stable")]

    def _block(self, number: int, rows: range) -> RowBlock:
        assert isinstance(self.split.images, Texts)
        queries = list(self.split.images.texts[rows.start : rows.stop])
        name, lines = f"queries of {self.split.name}", range(rows.start + 1, rows.stop + 1)
        return RowBlock((0, number), name, lines, queries, None, self._positives(rows), self._negatives(rows), 0, "row")

    def _positives(self, rows: range) -> TextLists:
        starts = self._pairs[:, 0].searchsorted(range(rows.start, rows.stop + 1))
        documents = self._pairs[starts[0] : starts[-1], 1].tolist()
        return TextLists([self.split.captions[row] for row in documents], (starts[1:] - starts[:-1]).tolist())

    def _negatives(self, rows: range) -> TextLists:
        table = self.split.relations.negatives
        if table is None:
            return TextLists([], [0] * len(rows))
        lists = [
            [self.split.captions[row] for row in documents if row >= 0]
            for documents in table[rows.start : rows.stop].tolist()
        ]
        return TextLists([text for row_texts in lists for text in row_texts], list(map(len, lists)))
