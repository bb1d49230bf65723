"""Who belongs to whom in a batch that is too large for a matrix of it: lists of cells, in either direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch, Rows
from lossscope.core.similarity import Direction, Mask, SameImage


@dataclass(frozen=True)
class SparseEntries:
    """Cells of a matrix, (m,) rows in rising order and (m,) columns. origin: (m,) where they were in the list that this
    one was made of."""

    rows: Tensor
    columns: Tensor
    origin: Tensor

    @classmethod
    def of(cls, rows: Rows, columns: Rows) -> SparseEntries:
        """In rising order of rows, then columns."""
        order = np.lexsort((columns, rows))
        return cls(*(torch.from_numpy(one) for one in (rows[order], columns[order], order)))

    def t(self) -> SparseEntries:
        """The same cells of the transposed matrix."""
        return SparseEntries.of(self.columns.numpy(), self.rows.numpy())

    def within(self, rows: slice) -> slice:
        """Places of the cells in some rows."""
        edges = torch.searchsorted(self.rows, torch.tensor([rows.start, rows.stop]))
        return slice(int(edges[0]), int(edges[1]))

    def of_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(k,) places among some rows, in rising order, and (k,) columns, of the cells in them."""
        if not len(rows) or not len(self.rows):
            return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
        part = self.within(slice(int(rows[0]), int(rows[-1]) + 1))
        place = torch.searchsorted(rows, self.rows[part])
        own = rows[place.clamp(max=len(rows) - 1)] == self.rows[part]
        return place[own], self.columns[part][own]

    def tile(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor, Tensor]:
        """(k,) rows and columns within a tile, and (k,) places in the list, of the cells that are in it."""
        part = self.within(rows)
        column = self.columns[part]
        inside = ((column >= columns.start) & (column < columns.stop)).nonzero()[:, 0]
        return self.rows[part][inside] - rows.start, column[inside] - columns.start, inside + part.start


@dataclass(frozen=True)
class SparseMask:
    """One direction of a batch: q queries, c candidates, which cells are positives and which take no part."""

    queries: int
    candidates: int
    positives: SparseEntries
    absent: SparseEntries
    direction: Direction = "i2t"

    @classmethod
    def of(cls, batch: Batch, caption_image: Rows, same_image: SameImage) -> SparseMask:
        """i2t of a batch, as `Batch.mask` has it."""
        images, captions = batch.images, batch.captions
        if batch.mode == "images":
            place = {int(image): row for row, image in enumerate(images)}
            owners = np.array([place[int(image)] for image in caption_image[captions]], dtype=np.int64)
            cells = SparseEntries.of(owners, np.arange(len(captions)))
            return cls(len(images), len(captions), cells, _none())
        own = np.arange(len(images))
        absent = _none() if same_image == "keep" else _siblings(images)
        return cls(len(images), len(captions), SparseEntries.of(own, own), absent)

    def t(self) -> SparseMask:
        """The other direction."""
        other: Direction = "t2i" if self.direction == "i2t" else "i2t"
        return SparseMask(self.candidates, self.queries, self.positives.t(), self.absent.t(), other)

    @cached_property
    def negatives(self) -> Tensor:
        """(q,) how many negatives each query has."""
        taken = torch.cat([self.positives.rows, self.absent.rows])
        return self.candidates - torch.bincount(taken, minlength=self.queries)

    def mask(self, queries: Tensor) -> Mask:
        """The mask of some queries, in rising order, against all candidates."""
        match = torch.zeros(len(queries), self.candidates, dtype=torch.bool)
        valid = torch.ones_like(match)
        match[self.positives.of_rows(queries)] = True
        valid[self.absent.of_rows(queries)] = False
        return Mask(match, valid, direction=self.direction)

    def padded(self, values: Tensor) -> Tensor:
        """(q, p) a value for each positive cell -> a row for each query, −inf where it has fewer."""
        rows = self.positives.rows.to(values.device)
        number = torch.bincount(rows, minlength=self.queries)
        slot = torch.arange(len(rows), device=rows.device) - (number.cumsum(0) - number)[rows]
        found = values.new_full((self.queries, max(int(number.max()), 1)), -torch.inf)
        found[rows, slot] = values
        return found


def _none() -> SparseEntries:
    return SparseEntries.of(*(np.zeros(0, dtype=np.int64) for _ in range(2)))


def _siblings(images: Rows) -> SparseEntries:
    """Pairs of different rows with one image."""
    order = np.argsort(images, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(images[order])) + 1)
    pairs = [(a, b) for group in groups if len(group) > 1 for a in group for b in group if a != b]
    if not pairs:
        return _none()
    rows, columns = np.array(pairs, dtype=np.int64).T
    return SparseEntries.of(rows, columns)
