"""The mask of a batch that is too large for a dense one: lists of entries, in either direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.relations import Relations, as_relations
from lossscope.core.similarity import Mask
from lossscope.core.types import Direction, Rows, SameImage
from lossscope.errors import InputError


@dataclass(frozen=True)
class SparseEntries:
    """A list of entries of a matrix, in increasing order of rows, then columns."""

    rows: Tensor  # (k,)
    columns: Tensor  # (k,)
    origin: Tensor  # (k,) index of each entry in the list that this one was made from

    @classmethod
    def of(cls, rows: Rows, columns: Rows) -> SparseEntries:
        """Sort entries by row, then column."""
        order = np.lexsort((columns, rows))
        return cls(*(torch.from_numpy(values) for values in (rows[order], columns[order], order)))

    def t(self) -> SparseEntries:
        """Return the same entries of the transposed matrix."""
        return SparseEntries.of(self.columns.numpy(), self.rows.numpy())

    def within(self, rows: slice) -> slice:
        """Return where the entries of consecutive rows are in the list."""
        start, stop = np.searchsorted(self.rows.numpy(), (rows.start, rows.stop))
        return slice(int(start), int(stop))

    def of_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return (k,) index within `rows`, which are in increasing order, and (k,) column of the entries in them."""
        if not len(rows) or not len(self.rows):
            return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
        part = self.within(slice(int(rows[0]), int(rows[-1]) + 1))
        index = torch.searchsorted(rows, self.rows[part])
        in_rows = rows[index.clamp(max=len(rows) - 1)] == self.rows[part]
        return index[in_rows], self.columns[part][in_rows]

    def tile(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return (k,) row and column within a tile, and (k,) index in the list, of the entries in the tile."""
        if not len(self.rows):
            return self.rows, self.columns, self.origin
        part = self.within(rows)
        column = self.columns[part]
        inside = ((column >= columns.start) & (column < columns.stop)).nonzero()[:, 0]
        return self.rows[part][inside] - rows.start, column[inside] - columns.start, inside + part.start


@dataclass(frozen=True)
class SparseMask:
    """The mask of one direction of a batch as lists of entries; all other entries are negatives."""

    queries: int  # q
    candidates: int  # c
    positives: SparseEntries
    invalid: SparseEntries
    direction: Direction = "i2t"

    @classmethod
    def of(cls, batch: Batch, related: Relations | Rows, same_image: SameImage) -> SparseMask:
        """Return the mask of the first direction of a batch, equal to `Batch.mask`.

        Args:
            batch: rows of both sides.
            related: positives of the split, or the image row of every caption.
            same_image: what another positive of the same item is, see `Batch.mask`.

        Raises:
            InputError: a query sees its own mined negatives only, which is no short list.
        """
        if batch.own_negatives:
            raise InputError("--negatives own needs batches whose matrix fits into memory; use a smaller --batch-size")
        relations = as_relations(related)
        q, c = len(batch.images), len(batch.captions)
        if batch.mode in ("images", "groups"):
            return cls(q, c, SparseEntries.of(*relations.entries(batch.images, batch.captions)), _no_entries())
        if batch.is_one_set:
            return cls(q, c, *_one_set_entries(batch, relations, same_image))
        diagonal = np.arange(q)
        positives = SparseEntries.of(diagonal, diagonal)
        if same_image == "keep":
            return cls(q, c, positives, _no_entries())
        rows, columns = relations.entries(batch.images, batch.captions)
        return cls(q, c, positives, SparseEntries.of(rows[rows != columns], columns[rows != columns]))

    def t(self) -> SparseMask:
        """Return the mask of the other direction."""
        other: Direction = "t2i" if self.direction == "i2t" else "i2t"
        return SparseMask(self.candidates, self.queries, self.positives.t(), self.invalid.t(), other)

    @cached_property
    def number_of_negatives(self) -> Tensor:
        """(q,) number of negatives of each query."""
        others = torch.cat([self.positives.rows, self.invalid.rows])
        return self.candidates - torch.bincount(others, minlength=self.queries)

    def mask(self, queries: Tensor) -> Mask:
        """Return the dense mask of some queries, in increasing order, against all candidates."""
        match = torch.zeros(len(queries), self.candidates, dtype=torch.bool)
        valid = torch.ones_like(match)
        match[self.positives.of_rows(queries)] = True
        valid[self.invalid.of_rows(queries)] = False
        return Mask(match, valid, direction=self.direction)

    def by_query(self, values: Tensor) -> Tensor:
        """Return the values of the positive entries, (k,), as (q, p) rows of queries, padded with −inf."""
        rows = self.positives.rows.to(values.device)
        number = torch.bincount(rows, minlength=self.queries)
        slot = torch.arange(len(rows), device=rows.device) - (number.cumsum(0) - number)[rows]
        padded = values.new_full((self.queries, max(int(number.max()), 1)), -torch.inf)
        padded[rows, slot] = values
        return padded


def _no_entries() -> SparseEntries:
    return SparseEntries.of(*(np.zeros(0, dtype=np.int64) for _ in range(2)))


def _one_set_entries(batch: Batch, relations: Relations, same_image: SameImage) -> tuple[SparseEntries, SparseEntries]:
    """Return the positives and the invalid entries of a batch whose queries are its candidates, too."""
    items = np.arange(len(batch.images))
    if batch.mode == "classes":
        positives = SparseEntries.of(*relations.entries(batch.images, batch.images))
        return positives, SparseEntries.of(items, items)
    positives = SparseEntries.of(items, batch.partners())
    if same_image == "keep":
        return positives, SparseEntries.of(items, items)
    rows, columns = batch.view_relations(relations)
    return positives, SparseEntries.of(np.concatenate([items, rows]), np.concatenate([items, columns]))
