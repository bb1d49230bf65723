"""One batch of any size without its matrix: both directions of every objective from one pass over the tiles of S."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from lossscope.core.counts import Counts
from lossscope.core.distributed import ProcessGroup
from lossscope.core.memory import entries_at_a_time
from lossscope.core.pair import Pair
from lossscope.core.types import Convention, OnStep
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.base import TileAccumulator
from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import BatchShape, Extremes, RowsOfS

from .extremes import ExtremeTracker
from .matrix import COLUMNS, ROWS, Tile, TiledMatrix, row_slices
from .sparse_mask import SparseEntries, SparseMask


class HasBlocks(Protocol):
    """A matrix of similarities whose parts are computed where they are needed."""

    @property
    def example(self) -> Tensor:
        """A tensor of the type and on the device of S."""
        ...

    def block(self, images: slice | Tensor, captions: slice | Tensor) -> Tensor:
        """(r, w) similarities of some images with some captions."""
        ...


TileStep = Callable[[Tile], Tile]
_BLOCK = 64  # positives of one product


@dataclass(frozen=True, eq=False)
class TiledRows(RowsOfS):
    """The result of a pass over S for one direction."""

    shape: BatchShape
    positives: QueryPositives
    accumulators: dict[Objective, TileAccumulator]
    tracker: ExtremeTracker | None  # None where extremes were not requested

    @property
    def extremes(self) -> Extremes:
        assert self.tracker is not None, "extremes must be requested before the pass"
        return self.tracker.extremes()

    @property
    def skipped(self) -> Tensor:
        return ~self.positives.usable

    def counts(self, objective: Objective, eps: float, convention: Convention) -> Counts:
        return self.accumulators[objective].counts(eps)


@dataclass(frozen=True)
class TilePass:
    """What one pass over the tiles of S computes, and how."""

    objectives: Sequence[Objective]  # all with a counting rule
    eps: Sequence[float]  # thresholds that are counted
    extremes: bool = False  # also the hardest negative and the rank of each query
    rows: int = ROWS  # of a tile
    columns: int = COLUMNS  # of a tile
    processes: ProcessGroup = field(default_factory=lambda: ProcessGroup(0, 1))  # those that share the rows
    on_tile: OnStep | None = None  # called after each tile

    def run(self, matrix: TiledMatrix, mask: SparseMask, shapes: Pair[BatchShape]) -> Pair[TiledRows]:
        """Return both directions of the batch, whole in every process.

        There is a second pass where one was not enough.

        Args:
            matrix: S.
            mask: of the direction i2t.
            shapes: of both directions.
        """
        buffers, transposed = Buffers(), mask.t()
        positives = positive_similarities(matrix, mask.positives)
        i2t = self._start(mask, positives, shapes.i2t, buffers)
        t2i = self._start(transposed, positives[transposed.positives.origin], shapes.t2i, buffers)
        doubtful: list[Tensor] = []
        both = Pair(i2t, t2i)
        hide = partial(_hide, mask, positives, doubtful)
        for tile in self._tiles(matrix, mask, hide, buffers):
            for objective in self.objectives:
                i2t.accumulators[objective].add(tile.S, tile.rows, 1)
                t2i.accumulators[objective].add(tile.S, tile.columns, 0)
            if i2t.tracker is not None and t2i.tracker is not None:
                i2t.tracker.add(tile.S, tile.rows, tile.columns, 1)
                t2i.tracker.add(tile.S, tile.columns, tile.rows, 0)
        self._merge(both)
        if self.extremes:
            self._correct_ranks(both, matrix, mask, doubtful)
        self._count_again(both, self._tiles(matrix, mask, hide, buffers))
        return both

    def _start(self, mask: SparseMask, positives: Tensor, shape: BatchShape, buffers: Buffers) -> TiledRows:
        """Return empty accumulators of one direction, whose positive entries have the similarities `positives`."""
        of_queries = QueryPositives(mask.by_query(positives), mask.number_of_negatives.to(positives.device))
        accumulators = {}
        for objective in self.objectives:
            assert objective.counting_rule is not None, "a pass is for objectives with a counting rule"
            accumulators[objective] = objective.counting_rule.accumulator(of_queries, self.eps, buffers, collect=True)
        tracker = ExtremeTracker(of_queries, buffers) if self.extremes else None
        return TiledRows(shape, of_queries, accumulators, tracker)

    def _tiles(self, matrix: TiledMatrix, mask: SparseMask, hide: TileStep, buffers: Buffers) -> Iterator[Tile]:
        """Yield this process's tiles, with −inf on entries that are not negatives."""
        rows, columns = row_slices(mask.queries, self.rows), row_slices(mask.candidates, self.columns)
        own = rows[self.processes.share(len(rows))]
        for done, tile in enumerate(matrix.tiles(own, columns, buffers)):
            buffers.next_tile()
            yield hide(tile)
            if self.on_tile:
                self.on_tile(done + 1, len(own) * len(columns))

    def _merge(self, both: Pair[TiledRows]) -> None:
        """Merge what all processes accumulated."""
        if self.processes.size == 1:
            return
        for rows in both:
            for accumulator in rows.accumulators.values():
                accumulator.merge(self.processes.gather(accumulator.state()))
            if rows.tracker is not None:
                rows.tracker.merge(self.processes.gather(rows.tracker.state()))

    def _count_again(self, both: Pair[TiledRows], tiles: Iterator[Tile]) -> None:
        """Run a second pass over all tiles for the accumulators that need it, if any does."""
        second = [
            (accumulator, dim)
            for rows, dim in ((both.i2t, 1), (both.t2i, 0))
            for accumulator in rows.accumulators.values()
            if accumulator.needs_second_pass
        ]
        if not second:
            return
        for tile in tiles:
            for accumulator, dim in second:
                accumulator.recount(tile.S, tile.rows if dim == 1 else tile.columns, dim)
        for accumulator, _ in second:
            if self.processes.size > 1:
                accumulator.merge_second_pass(self.processes.gather(accumulator.state()))

    def _correct_ranks(
        self, both: Pair[TiledRows], matrix: TiledMatrix, mask: SparseMask, doubtful: list[Tensor]
    ) -> None:
        """Rank again the queries with a doubtful positive: its last bits in the tile differ from those compared with.

        A positive must not outrank itself: there, positives and negatives of one product are compared.
        """
        none = torch.zeros(0, dtype=torch.int64)
        indices = torch.cat([none, *(index for part in self.processes.gather(doubtful) for index in part)])
        rows, columns = (torch.unique(c[indices]) for c in (mask.positives.rows, mask.positives.columns))
        for tiled_rows, queries, own_mask in ((both.i2t, rows, mask), (both.t2i, columns, mask.t())):
            for part in torch.split(queries, self.rows):
                _rank_rows(tiled_rows, part, matrix.whole_rows(part, own_mask.direction), own_mask)


def _hide(mask: SparseMask, positives: Tensor, doubtful: list[Tensor], tile: Tile) -> Tile:
    """Set the entries of a tile that are not negatives to −inf, in place.

    Args:
        mask: of the direction i2t.
        positives: (k,) similarities that positives are compared with.
        doubtful: gets the indices of positives that differ from these in the tile.
        tile: of S.
    """
    row, column, index = mask.positives.tile(tile.rows, tile.columns)
    if len(index):
        doubtful.append(index[(tile.S[row, column] != positives[index]).cpu()])
        tile.S[row, column] = -torch.inf
    row, column, _ = mask.invalid.tile(tile.rows, tile.columns)
    if len(row):
        tile.S[row, column] = -torch.inf
    return tile


def positive_similarities(matrix: HasBlocks, entries: SparseEntries) -> Tensor:
    """(k,) similarities of the positive entries, from products of a few rows, mostly with the last bits of tiles."""
    similarities = matrix.example.new_empty(len(entries.rows))
    size = entries_at_a_time(_BLOCK, similarities.device)
    for start in range(0, len(entries.rows), size):
        part = slice(start, min(start + size, len(entries.rows)))
        rows, index = torch.unique_consecutive(entries.rows[part], return_inverse=True)
        block = matrix.block(rows, entries.columns[part])
        similarities[part] = block[index, torch.arange(len(index))]
    return similarities


def _rank_rows(tiled_rows: TiledRows, queries: Tensor, S: Tensor, sparse_mask: SparseMask) -> None:
    """Replace the ranks of some queries by those from whole rows, S (k, c)."""
    mask = sparse_mask.mask(queries).to(S.device)
    best = S.masked_fill(~mask.positives, -torch.inf).amax(1)
    assert tiled_rows.tracker is not None
    tiled_rows.tracker.correct_ranks(queries, best, S.masked_fill(mask.non_negatives, -torch.inf))
