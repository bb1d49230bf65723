"""The rank of every positive, by counting in tiles: one product for both directions, and S is never built whole."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.types import OnStep
from lossscope.engine.tiled.matrix import TiledMatrix, row_slices, tile_size
from lossscope.engine.tiled.one_pass import positive_similarities
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.objectives.counting.buffers import Buffers


@dataclass(frozen=True)
class RankCounts:
    """Candidates above and equal to each positive of one direction; q queries with at most p positives."""

    above: Tensor  # (q, p) candidates strictly above each positive
    equal: Tensor  # (q, p) candidates equal to each positive, itself left out
    columns: Tensor  # (q, p) columns of the positives, −1 where a query has fewer
    doubtful: Tensor  # (q,) bool, queries to be ranked from whole rows: a positive has other last bits in its tile


class _RankCounter:
    """Count the candidates above, and at least as high as, each positive of one direction.

    Args:
        mask: of the direction.
        positives: (k,) similarities of its positive entries.
        buffers: memory for the tiles' comparisons.
    """

    def __init__(self, mask: SparseMask, positives: Tensor, buffers: Buffers) -> None:
        device = positives.device
        self.buffers, padded = buffers, mask.by_query(positives)
        columns = mask.by_query(mask.positives.columns.to(device).double())
        self.columns = columns.where(columns >= 0, -1.0).long()
        self.positives = padded.where(self.columns >= 0, torch.inf)
        self.above, self.at_least = (torch.zeros(padded.shape, dtype=torch.float64, device=device) for _ in range(2))
        self.doubtful = torch.zeros(len(padded), dtype=torch.bool, device=device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Count the candidates of a tile for the queries `rows`; candidates are along `dim`."""
        comparison = self.buffers.empty_like(tile)
        for slot in range(self.positives.shape[1]):
            value = self.positives[rows, slot].unsqueeze(dim)
            self.above[rows, slot] += self.buffers.sum(torch.gt(tile, value, out=comparison), dim)
            self.at_least[rows, slot] += self.buffers.sum(torch.ge(tile, value, out=comparison), dim)

    def result(self) -> RankCounts:
        """Return the counts of the tiles so far."""
        equal = (self.at_least - self.above - (self.columns >= 0).double()).long()
        return RankCounts(self.above.long(), equal, self.columns, self.doubtful)


def count_ranks(
    matrix: TiledMatrix, mask: SparseMask, wanted: Pair[bool], on_tile: OnStep | None = None
) -> Pair[RankCounts | None]:
    """Return the exact counts of both directions of S (n, m): positives and negatives are compared within one product.

    Args:
        matrix: S in tiles.
        mask: of the direction i2t; entries that are not valid count in no row.
        wanted: directions to count; the others are None.
        on_tile: called after each tile.
    """
    buffers, transposed = Buffers(), mask.t()
    positives = positive_similarities(matrix, mask.positives)
    positives_t2i = positives[transposed.positives.origin.to(positives.device)]
    counters = Pair(
        _RankCounter(mask, positives, buffers) if wanted.i2t else None,
        _RankCounter(transposed, positives_t2i, buffers) if wanted.t2i else None,
    )
    size = tile_size(positives.device)
    rows, columns = (row_slices(n, of_tile) for n, of_tile in zip(matrix.shape, size, strict=True))
    for done, tile in enumerate(matrix.tiles(rows, columns, buffers)):
        row, column, place = mask.positives.tile(tile.rows, tile.columns)
        off = (tile.S[row, column] != positives[place]).cpu()
        invalid_row, invalid_column, _ = mask.invalid.tile(tile.rows, tile.columns)
        if len(invalid_row):
            tile.S[invalid_row, invalid_column] = -torch.inf
        for counter, queries, own, dim in (
            (counters.i2t, tile.rows, row, 1),
            (counters.t2i, tile.columns, column, 0),
        ):
            if counter is not None:
                counter.doubtful[own[off] + queries.start] = True
                counter.add(tile.S, queries, dim)
        if on_tile:
            on_tile(done + 1, len(rows) * len(columns))
    return counters.map(lambda counter: None if counter is None else counter.result())
