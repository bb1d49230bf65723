"""All candidates of a direction from shards of vectors, with one block in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.types import Rows
from lossscope.core.vector_shards import VectorShards
from lossscope.errors import InputError
from lossscope.objectives.counting.block import Buffers, Tile

from . import strips
from .matrix import positive_similarities, product_tiles, row_slices, tile_size
from .sparse_mask import SparseEntries, SparseMask


@dataclass(frozen=True, eq=False)
class ShardStrips:
    """Strips of shards of vectors; one block and the vectors of the queries are in memory.

    Raises InputError unless the candidates are in the order of their shards, so that each shard is read once.
    """

    queries: Tensor  # (n, d)
    candidates: VectorShards
    candidate_rows: Rows  # (c,) rows in the shards; a row may be several candidates
    transposed: bool  # whether the queries are of the second side

    def __post_init__(self) -> None:
        if not bool((np.diff(self.candidate_rows) >= 0).all()):
            raise InputError(
                f"{self.candidates.what} must be in the order of the pairs; they are not. Sort the captions by image, "
                "so that lossscope reads each shard once"
            )

    @property
    def number(self) -> int:
        """Number of strips."""
        return len(self._parts)

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Ranges of rows of the shards that have candidates."""
        return [part for part in self.candidates.rows.parts(strips.STRIP) if len(range(*self._candidate_range(*part)))]

    def _candidate_range(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of candidates in a range of rows."""
        first, end = np.searchsorted(self.candidate_rows, [start, stop])
        return int(first), int(end)

    def positives(self, mask: SparseMask) -> Tensor:
        """(k,) similarities of the positive entries of the mask."""
        entries = mask.positives
        candidates = entries.rows if self.transposed else entries.columns
        wanted, index = np.unique(self.candidate_rows[candidates.numpy()], return_inverse=True)
        vectors, local = self.candidates.take(wanted), torch.from_numpy(index)
        if self.transposed:
            # rows of the mask are candidates, in increasing order, and so are their indices among those wanted
            return positive_similarities(
                _Vectors(vectors, self.queries), SparseEntries(local, entries.columns, entries.origin)
            )
        return positive_similarities(
            _Vectors(self.queries, vectors), SparseEntries(entries.rows, local, entries.origin)
        )

    def tiles(self, strip: int, buffers: Buffers) -> Iterator[Tile]:
        """Yield the tiles of a strip, block by block of its shards."""
        for first, block in self.candidates.blocks(*self._parts[strip]):
            start, stop = self._candidate_range(first, first + len(block))
            rows = self.candidate_rows[start:stop] - first
            vectors = block if len(rows) == len(block) and (np.diff(rows) == 1).all() else block[torch.from_numpy(rows)]
            yield from self._tiles_of_block(vectors, start, buffers)

    def whole_rows(self, queries: Tensor, mask: SparseMask) -> None:
        """Return None: read queries again strip by strip."""

    def _tiles_of_block(self, vectors: Tensor, start: int, buffers: Buffers) -> Iterator[Tile]:
        """Yield the tiles of consecutive candidates from `start` on."""
        n, (height, width) = len(self.queries), tile_size(self.queries.device)
        if self.transposed:
            rows, columns = row_slices(len(vectors), height), row_slices(n, width)
            for tile in product_tiles(vectors, self.queries, rows, columns, buffers):
                yield Tile(tile.S, _shift(tile.rows, start), tile.columns, buffers)
        else:
            rows, columns = row_slices(n, height), row_slices(len(vectors), width)
            for tile in product_tiles(self.queries, vectors, rows, columns, buffers):
                yield Tile(tile.S, tile.rows, _shift(tile.columns, start), buffers)


@dataclass(frozen=True, eq=False)
class _Vectors:
    """S of vectors of both sides."""

    images: Tensor
    captions: Tensor

    @property
    def example(self) -> Tensor:
        return self.images

    def block(self, images: slice | Tensor, captions: slice | Tensor) -> Tensor:
        return self.images[images] @ self.captions[captions].T


def _shift(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
