"""S of one batch in bands of tiles: products of two sides, computed on demand into reused memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.memory import entries_at_a_time
from lossscope.core.types import Direction, Rows
from lossscope.objectives.counting.block import Buffers, Tile

from .sparse_mask import SparseEntries, SparseMask

ROWS, COLUMNS = 256, 4096  # of a tile: 4 MB, which fit into the caches of a core
_THIN = 32  # rows; thinner products may add up their columns in another order
_BANDS = 256  # bands, at most: more would take longer to merge than to compute
_BLOCK = 64  # positives of a product


@dataclass(frozen=True, eq=False)
class TiledMatrix:
    """S (n, m) of n images and m captions of a split, computed on demand."""

    embedded: SplitEmbeddings
    image_rows: Rows  # (n,)
    caption_rows: Rows  # (m,)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return len(self.image_rows), len(self.caption_rows)

    @property
    def example(self) -> Tensor:
        """A tensor with the type and the device of S."""
        example = self.embedded.images if self.embedded.images is not None else self.embedded.similarity
        assert example is not None, "tiles need embeddings or similarities"
        return example

    @cached_property
    def images(self) -> Tensor | None:
        """(n, d) embeddings, or None if the split has similarities only; not copied if the rows are consecutive."""
        return None if self.embedded.images is None else _select_rows(self.embedded.images, self.image_rows)

    @cached_property
    def captions(self) -> Tensor | None:
        """(m, d) embeddings, likewise."""
        return None if self.embedded.captions is None else _select_rows(self.embedded.captions, self.caption_rows)

    def block(self, images: slice | Tensor, captions: slice | Tensor) -> Tensor:
        """(r, w) similarities of some images with some captions, in new memory."""
        if self.images is not None and self.captions is not None:
            return self.images[images] @ self.captions[captions].T
        assert self.embedded.similarity is not None
        rows = torch.from_numpy(self.image_rows)[images]
        return self.embedded.similarity[rows][:, torch.from_numpy(self.caption_rows)[captions]]

    def whole_rows(self, queries: Tensor, direction: Direction) -> Tensor:
        """(k, candidates) whole rows of some queries of a direction.

        A few queries are repeated to fill 32 rows: a thinner product may add up its columns in different orders.
        """
        repeated = queries.repeat(-(-_THIN // max(len(queries), 1))) if len(queries) < _THIN else queries
        if direction == "i2t":
            return self.block(repeated, slice(0, self.shape[1]))[: len(queries)]
        return self.block(slice(0, self.shape[0]), repeated)[:, : len(queries)].T.contiguous()

    def tiles(self, rows: list[slice], columns: list[slice], buffers: Buffers) -> Iterator[Tile]:
        """Yield the tile of every slice of rows and every slice of columns, row by row."""
        if self.images is not None and self.captions is not None:
            yield from product_tiles(self.images, self.captions, rows, columns, buffers)
            return
        for row_slice in rows:
            for column_slice in columns:
                yield Tile(self.block(row_slice, column_slice), row_slice, column_slice, buffers)


@dataclass(frozen=True, eq=False)
class MatrixBlocks:
    """A whole S in bands of rows."""

    matrix: TiledMatrix
    height: int  # of a tile
    width: int

    @property
    def number(self) -> int:
        """Number of bands."""
        return len(self._bands)

    @cached_property
    def _bands(self) -> list[tuple[list[slice], list[slice]]]:
        """The rows and the columns of the tiles of each band."""
        rows, columns = row_slices(self.matrix.shape[0], self.height), row_slices(self.matrix.shape[1], self.width)
        return [(rows[part], columns) for part in row_slices(len(rows), -(-len(rows) // _BANDS))]

    def positives(self, mask: SparseMask) -> Tensor:
        """(k,) similarities of the positive entries of the mask."""
        return positive_similarities(self.matrix, mask.positives)

    def tiles(self, band: int, buffers: Buffers) -> Iterator[Tile]:
        """Yield the tiles of a band, row by row."""
        yield from self.matrix.tiles(*self._bands[band], buffers)

    def whole_rows(self, queries: Tensor, mask: SparseMask) -> Iterator[tuple[Tensor, Tensor]] | None:
        """Yield parts of the queries and their whole rows."""
        parts = torch.split(queries, self.height)
        return ((part, self.matrix.whole_rows(part, mask.direction)) for part in parts)


class HasBlocks(Protocol):
    """A matrix of similarities whose parts are computed on demand."""

    @property
    def example(self) -> Tensor:
        """A tensor with the type and the device of S."""
        ...

    def block(self, images: slice | Tensor, captions: slice | Tensor) -> Tensor:
        """(r, w) similarities of some images with some captions."""
        ...


def positive_similarities(matrix: HasBlocks, entries: SparseEntries) -> Tensor:
    """(k,) similarities of the positive entries, from products of a few rows; most have the same last bits as tiles."""
    similarities = matrix.example.new_empty(len(entries.rows))
    size = entries_at_a_time(_BLOCK, similarities.device)
    for start in range(0, len(entries.rows), size):
        part = slice(start, min(start + size, len(entries.rows)))
        rows, index = torch.unique_consecutive(entries.rows[part], return_inverse=True)
        block = matrix.block(rows, entries.columns[part])
        similarities[part] = block[index, torch.arange(len(index))]
    return similarities


def product_tiles(
    images: Tensor, captions: Tensor, rows: list[slice], columns: list[slice], buffers: Buffers
) -> Iterator[Tile]:
    """Yield the products of every slice of images, (n, d), and every slice of captions, (m, d), row by row."""
    for row_slice in rows:
        for column_slice in columns:
            shape = (row_slice.stop - row_slice.start, column_slice.stop - column_slice.start)
            S = buffers.get("tile", shape, images.dtype, images.device)
            torch.mm(images[row_slice], captions[column_slice].T, out=S)
            yield Tile(S, row_slice, column_slice, buffers)


def tile_size(device: torch.device) -> tuple[int, int]:
    """Return the rows and columns of a tile; counts do not depend on them."""
    sides = round((entries_at_a_time(1, device)) ** 0.5)
    return sides * ROWS, sides * COLUMNS


def row_slices(n: int, size: int) -> list[slice]:
    """Cut 0..n-1 into slices of at most `size`, as even as possible: a single row is multiplied in another order."""
    number = max(-(-n // size), 1)
    edges = [n * i // number for i in range(number + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _select_rows(embeddings: Tensor, rows: Rows) -> Tensor:
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all()):
        return embeddings[int(rows[0]) : int(rows[-1]) + 1]
    return embeddings[torch.from_numpy(rows)]
