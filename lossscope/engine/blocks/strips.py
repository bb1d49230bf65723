"""All candidates of a direction in strips, each of which is read once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from lossscope.objectives.counting.block import Buffers, Tile

from .matrix import TiledMatrix, positive_similarities, row_slices, tile_size
from .sparse_mask import SparseMask

STRIP = 1 << 20  # candidates of a strip, at most: sums are merged, and can be resumed, after each


@dataclass(frozen=True, eq=False)
class MatrixStrips:
    """Strips of embeddings or similarities that are in memory, or mapped into it."""

    matrix: TiledMatrix  # one of its sides is the sampled queries
    transposed: bool  # whether that is the second

    @property
    def number(self) -> int:
        """Number of strips."""
        return len(self._strips)

    @property
    def _strips(self) -> list[slice]:
        return row_slices(self.matrix.shape[0 if self.transposed else 1], STRIP)

    def positives(self, mask: SparseMask) -> Tensor:
        """(k,) similarities of the positive entries of the mask."""
        return positive_similarities(self.matrix, mask.positives)

    def tiles(self, strip: int, buffers: Buffers) -> Iterator[Tile]:
        """Yield the tiles of a strip; those of a query come in the order of its candidates."""
        own, (height, width) = self._strips[strip], tile_size(self.matrix.example.device)
        if self.transposed:
            rows, columns = _within(own, height), row_slices(self.matrix.shape[1], width)
        else:
            rows, columns = row_slices(self.matrix.shape[0], height), _within(own, width)
        yield from self.matrix.tiles(rows, columns, buffers)

    def whole_rows(self, queries: Tensor, mask: SparseMask) -> None:
        """Return None: queries are read again strip by strip."""


def _within(part: slice, size: int) -> list[slice]:
    """Cut a slice into slices of at most `size`, as even as possible."""
    return [slice(part.start + s.start, part.start + s.stop) for s in row_slices(part.stop - part.start, size)]
