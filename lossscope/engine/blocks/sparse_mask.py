"""The mask of a batch that is too large for a dense mask: lists of entries, in either direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.cached import cached_property
from lossscope.core.relations import Relations
from lossscope.core.similarity import Mask
from lossscope.core.types import Direction, Rows, SameImage


@dataclass(frozen=True)
class SparseEntries:
    """A list of entries of a matrix, in increasing order of rows, then columns."""

    rows: Tensor  # (k,)
    columns: Tensor  # (k,)
    origin: Tensor  # (k,) index of each entry in the original list

    @classmethod
    def of(cls, rows: Rows, columns: Rows) -> SparseEntries:
        """Sort entries by row, then column."""
        order = np.lexsort((columns, rows))
        return cls(*(torch.from_numpy(values) for values in (rows[order], columns[order], order)))

    def t(self) -> SparseEntries:
        """Return the same entries of the transposed matrix."""
        return SparseEntries.of(self.columns.numpy(), self.rows.numpy())

    def within(self, rows: slice) -> slice:
        """Return the slice of the list with the entries of consecutive rows."""
        start, stop = np.searchsorted(self.rows.numpy(), (rows.start, rows.stop))
        return slice(int(start), int(stop))

    def of_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return (k,) index within `rows`, which must increase, and (k,) column of their entries."""
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
    def of(
        cls,
        batch: Batch,
        related: Relations | Rows,
        same_image: SameImage,
        queries: Rows | None = None,
        direction: Direction = "i2t",
    ) -> SparseMask:
        """Return the mask of queries of a direction of a batch; `Batch.entries` has the same arguments."""
        positives, invalid = batch.entries(related, same_image, queries, direction)
        q, c = (len(side) for side in (batch.images, batch.captions)[:: 1 if direction == "i2t" else -1])
        q = q if queries is None else len(queries)
        return cls(q, c, SparseEntries.of(*positives), SparseEntries.of(*invalid), direction)

    def t(self) -> SparseMask:
        """Return the mask of the other direction."""
        return self._transposed

    @cached_property
    def _transposed(self) -> SparseMask:
        other: Direction = "t2i" if self.direction == "i2t" else "i2t"
        return SparseMask(self.candidates, self.queries, self.positives.t(), self.invalid.t(), other)

    @cached_property
    def number_of_negatives(self) -> Tensor:
        """(q,) number of negatives of each query."""
        others = torch.cat([self.positives.rows, self.invalid.rows])
        return self.candidates - torch.bincount(others, minlength=self.queries)

    def mask(self, queries: Tensor) -> Mask:
        """Return the dense mask of queries, in increasing order, against all candidates."""
        match = torch.zeros(len(queries), self.candidates, dtype=torch.bool)
        valid = torch.ones_like(match)
        match[self.positives.of_rows(queries)] = True
        valid[self.invalid.of_rows(queries)] = False
        return Mask(match, valid, direction=self.direction)

    def by_query(self, values: Tensor) -> Tensor:
        """Return values of the positive entries, (k,), as (q, p) rows of queries, padded with −inf."""
        rows = self.positives.rows.to(values.device)
        number = torch.bincount(rows, minlength=self.queries)
        slot = torch.arange(len(rows), device=rows.device) - (number.cumsum(0) - number)[rows]
        padded = values.new_full((self.queries, max(int(number.max()), 1)), -torch.inf)
        padded[rows, slot] = values
        return padded
