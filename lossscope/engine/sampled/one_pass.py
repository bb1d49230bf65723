"""Sampled queries against all candidates in one pass: sums of each strip, merged in the order of the strips.

What is merged does not depend on which process computed a strip, nor on when: so any number of processes, and a pass
that was killed and resumed, give the same numbers to the last bit.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lossscope.core.distributed import ProcessGroup
from lossscope.core.types import OnStep
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.base import TileAccumulator
from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import BatchShape

from ..tiled.extremes import ExtremeTracker
from ..tiled.matrix import Tile
from ..tiled.one_pass import TiledRows
from ..tiled.sparse_mask import SparseMask
from .checkpoint import PassCheckpoint
from .pass_state import State, load_state, merge_strip, state_of, to_device
from .strips import Strips


@dataclass(frozen=True, eq=False)
class SampledPass:
    """One direction: what is computed of the sampled queries, and how."""

    objectives: Sequence[Objective]  # all with a counting rule
    eps: Sequence[float]  # thresholds that are counted
    extremes: bool  # also the hardest negative and the rank of each query
    strips: Strips
    mask: SparseMask  # of the direction, whose rows are the sampled queries
    shape: BatchShape
    processes: ProcessGroup  # those that share the strips
    checkpoint: PassCheckpoint  # of the strips that are done
    on_strip: OnStep | None = None  # called after each round of strips

    def run(self) -> TiledRows:
        """Return the rows of the sampled queries, whole in every process.

        There is a second pass where one was not enough: more entries may count than are kept, or a positive has other
        last bits in its tile, which decide its rank.
        """
        total = self._start()
        state = self._merge_strips("first", total)
        load_state(total, state)
        again = [one for one in total.accumulators.values() if one.needs_second_pass]
        doubtful = self._doubtful(state["in_tile"]) if total.tracker is not None else torch.zeros(0, dtype=torch.int64)
        if again:
            self._count_again(again)
        if len(doubtful):
            self._rank_again(total, doubtful, state["in_tile"])
        return total

    @cached_property
    def _tile_mask(self) -> SparseMask:
        """The mask with the first side as its rows, as tiles are."""
        return self.mask if self.mask.direction == "i2t" else self.mask.t()

    @property
    def _dim(self) -> int:
        return 1 if self.mask.direction == "i2t" else 0

    @cached_property
    def _positives(self) -> Tensor:
        """(k,) similarities of the positive entries of the tiles' mask."""
        return self.strips.positives(self._tile_mask)

    def _by_query(self, similarities: Tensor) -> Tensor:
        """(n, p) similarities of positive entries, (k,) as the tiles' mask has them."""
        if self._dim == 1:
            return self.mask.by_query(similarities)
        return self.mask.by_query(similarities[self._tile_mask.t().positives.origin])

    @cached_property
    def _of_queries(self) -> QueryPositives:
        device = self._positives.device
        return QueryPositives(self._by_query(self._positives), self.mask.number_of_negatives.to(device))

    def _start(self) -> TiledRows:
        """Return empty accumulators."""
        buffers, accumulators = Buffers(), {}
        for objective in self.objectives:
            assert objective.counting_rule is not None, "a pass is for objectives with a counting rule"
            accumulators[objective] = objective.counting_rule.accumulator(
                self._of_queries, self.eps, buffers, collect=True
            )
        tracker = ExtremeTracker(self._of_queries, buffers) if self.extremes else None
        return TiledRows(self.shape, self._of_queries, accumulators, tracker)

    def _merge_strips(self, label: str, total: TiledRows) -> State:
        """Return the state over all strips, in whose order they are merged; resumed where a checkpoint has a part."""
        done, state = self.checkpoint.load(label) if self.processes.main else (0, None)
        done, state = self.processes.gather((done, state))[0]
        state = to_device(state, self._positives.device)
        try:
            for own in self._rounds(done):
                part = self._state_of_strip(own) if own is not None else None
                for strip in (one for one in self.processes.gather(part) if one is not None):
                    state = strip if state is None else merge_strip(total, state, strip)
                    done += 1
                self.checkpoint.save(label, done, state, done == self.strips.number, self.processes.main)
                if self.on_strip:
                    self.on_strip(done, self.strips.number)
        except BaseException:  # such as Ctrl-C: what is done is kept
            self.checkpoint.write(self.processes.main)
            raise
        assert state is not None, "there is at least one strip"
        return state

    def _rounds(self, done: int) -> Iterator[int | None]:
        """Yield this process's strip of every round, in which each process has one; None: there are no more."""
        for first in range(done, self.strips.number, self.processes.size):
            own = first + self.processes.rank
            yield own if own < self.strips.number else None

    def _state_of_strip(self, strip: int) -> State:
        rows, in_tile = self._start(), torch.full_like(self._positives, torch.nan)
        for tile in self._tiles(strip, in_tile):
            queries, candidates = (tile.rows, tile.columns) if self._dim == 1 else (tile.columns, tile.rows)
            for accumulator in rows.accumulators.values():
                accumulator.add(tile.S, queries, self._dim)
            if rows.tracker is not None:
                rows.tracker.add(tile.S, queries, candidates, self._dim)
        return {**state_of(rows), "in_tile": in_tile}

    def _tiles(self, strip: int, in_tile: Tensor | None = None) -> Iterator[Tile]:
        """Yield the tiles of a strip with −inf on entries that are not negatives.

        Args:
            strip: its number.
            in_tile: (k,) gets the similarities of positives that are in the tiles.
        """
        buffers = self._buffers
        for tile in self.strips.tiles(strip, buffers):
            buffers.next_tile()
            row, column, index = self._tile_mask.positives.tile(tile.rows, tile.columns)
            if len(index):
                if in_tile is not None:
                    in_tile[index] = tile.S[row, column]
                tile.S[row, column] = -torch.inf
            row, column, _ = self._tile_mask.invalid.tile(tile.rows, tile.columns)
            if len(row):
                tile.S[row, column] = -torch.inf
            yield tile

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers()

    def _count_again(self, accumulators: Sequence[TileAccumulator]) -> None:
        """Count in a second pass, strip by strip, for the accumulators that need it."""
        empty = [copy.deepcopy(one) for one in accumulators]
        for own in self._rounds(0):
            parts = None
            if own is not None:
                fresh = [copy.deepcopy(one) for one in empty]
                for tile in self._tiles(own):
                    for accumulator in fresh:
                        accumulator.recount(tile.S, tile.rows if self._dim == 1 else tile.columns, self._dim)
                parts = [one.state() for one in fresh]
            for strip in (one for one in self.processes.gather(parts) if one is not None):
                for accumulator, part in zip(accumulators, strip, strict=True):
                    accumulator.merge_second_pass([accumulator.state(), part])

    def _doubtful(self, in_tile: Tensor) -> Tensor:
        """Return the queries with a positive whose similarity in its tile has other last bits than that compared."""
        index = (in_tile != self._positives).nonzero()[:, 0].cpu()
        queries = self._tile_mask.positives.rows if self._dim == 1 else self._tile_mask.positives.columns
        doubtful: Tensor = torch.unique(queries[index])
        return doubtful

    def _rank_again(self, total: TiledRows, doubtful: Tensor, in_tile: Tensor) -> None:
        """Rank the doubtful queries against the similarities of their positives in the tiles, in a second pass.

        A positive must not outrank itself: there, positives and negatives of one product are compared.
        """
        positives = QueryPositives(self._by_query(in_tile), self._of_queries.number_of_negatives)
        above, at_least = (torch.zeros_like(self._positives_double) for _ in range(2))
        for own in self._rounds(0):
            part = None
            if own is not None:
                tracker = ExtremeTracker(positives, self._buffers)
                for tile in self._tiles(own):
                    queries, candidates = (tile.rows, tile.columns) if self._dim == 1 else (tile.columns, tile.rows)
                    tracker.add(tile.S, queries, candidates, self._dim)
                part = (tracker.above, tracker.at_least)
            for strip in (one for one in self.processes.gather(part) if one is not None):
                above, at_least = above + strip[0], at_least + strip[1]
        assert total.tracker is not None
        rows = doubtful.to(above.device)
        total.tracker.above[rows], total.tracker.at_least[rows] = above[rows], at_least[rows]

    @property
    def _positives_double(self) -> Tensor:
        return self._of_queries.best.double()
