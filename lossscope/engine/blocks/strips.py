"""All candidates of a direction in strips; each strip is read once, in order."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.types import Direction

from .matrix import MatrixBlocks, TiledMatrix, row_slices, tile_size
from .sparse_mask import SparseMask

STRIP = 1 << 20  # candidates of a strip, at most: sums are merged after each strip, and a pass can resume there


@dataclass(frozen=True, eq=False)
class MatrixStrips(MatrixBlocks):
    """Strips of embeddings or similarities in memory or mapped into it; tiles come strip by strip."""

    direction: Direction = "i2t"  # of the queries

    @classmethod
    def of(cls, matrix: TiledMatrix, direction: Direction) -> MatrixStrips:
        """Return the strips of the candidates of a direction."""
        return cls(matrix, *tile_size(matrix.example.device), direction)

    @cached_property
    def _bands(self) -> list[tuple[list[slice], list[slice]]]:
        n, m = self.matrix.shape
        if self.direction == "i2t":
            queries = row_slices(n, self.height)
            return [(queries, _within(strip, self.width)) for strip in row_slices(m, STRIP)]
        queries = row_slices(m, self.width)
        return [(_within(strip, self.height), queries) for strip in row_slices(n, STRIP)]

    def whole_rows(self, queries: Tensor, mask: SparseMask) -> None:
        """Return None: read queries again strip by strip."""


def _within(part: slice, size: int) -> list[slice]:
    """Cut a slice into slices of at most `size`, as even as possible."""
    return [slice(part.start + s.start, part.start + s.stop) for s in row_slices(part.stop - part.start, size)]
