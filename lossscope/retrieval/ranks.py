"""The rank of every positive, by counting in tiles: one product for both directions, and no matrix of S."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.engine.tiled.matrix import COLUMNS, ROWS, TiledMatrix, row_slices
from lossscope.engine.tiled.one_pass import positive_similarities
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.objectives.counting.buffers import Buffers

Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class RankCounts:
    """One direction. above, level: (q, p) candidates strictly above each positive, and as high (itself left out).

    columns: (q, p) where the positives are, −1 where there are fewer. doubtful: (q,) bool, queries to be ranked from
    their whole row: a positive came out with other last bits in its tile than it was compared with.
    """

    above: Tensor
    level: Tensor
    columns: Tensor
    doubtful: Tensor


class _Count:
    """Candidates above, and at least as high as, each positive of one direction."""

    def __init__(self, relation: SparseMask, own: Tensor, space: Buffers) -> None:
        self.space, self.known = space, relation.padded(own)
        places = relation.padded(relation.positives.columns.to(own.device).double())
        self.columns = places.where(places >= 0, -1.0).long()
        self.compared = self.known.where(self.columns >= 0, torch.inf)
        self.above, self.least = (torch.zeros(self.known.shape, dtype=torch.float64, device=own.device) for _ in "ab")
        self.doubtful = torch.zeros(len(self.known), dtype=torch.bool, device=own.device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Meet a tile; `rows` are the queries that it is about."""
        truth = self.space.like(tile)
        for slot in range(self.known.shape[1]):
            value = self.compared[rows, slot].unsqueeze(dim)
            self.above[rows, slot] += self.space.total(torch.gt(tile, value, out=truth), dim)
            self.least[rows, slot] += self.space.total(torch.ge(tile, value, out=truth), dim)

    def ranked(self) -> RankCounts:
        """What was counted."""
        level = (self.least - self.above - (self.columns >= 0).double()).long()
        return RankCounts(self.above.long(), level, self.columns, self.doubtful)


def count_ranks(matrix: TiledMatrix, relation: SparseMask, tick: Tick | None = None) -> Pair[RankCounts]:
    """Both directions of S (n, m), exactly: positives and negatives are compared within one product."""
    space, other = Buffers(), relation.t()
    own = positive_similarities(matrix, relation)
    sides = Pair(_Count(relation, own, space), _Count(other, own[other.positives.origin.to(own.device)], space))
    rows, columns = row_slices(matrix.shape[0], ROWS), row_slices(matrix.shape[1], COLUMNS)
    for done, tile in enumerate(matrix.tiles(rows, columns, space)):
        row, column, place = relation.positives.tile(tile.rows, tile.columns)
        off = (tile.S[row, column] != own[place]).cpu()
        sides.i2t.doubtful[row[off] + tile.rows.start] = True
        sides.t2i.doubtful[column[off] + tile.columns.start] = True
        sides.i2t.add(tile.S, tile.rows, 1)
        sides.t2i.add(tile.S, tile.columns, 0)
        if tick:
            tick(done + 1, len(rows) * len(columns))
    return sides.map(_Count.ranked)
