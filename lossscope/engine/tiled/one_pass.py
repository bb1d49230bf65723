"""One batch of any size without its matrix: both directions of every objective from one look at each tile of S."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from lossscope.core.counts import Convention, Counts
from lossscope.core.distributed import ProcessGroup
from lossscope.core.pair import Pair
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.base import TileAccumulator, Undecided
from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import BatchShape, Extremes, RowsOfS

from .bfloat16 import Bfloat16Tiles, require_comparisons
from .extremes import ExtremeTracker
from .matrix import COLUMNS, ROWS, Tile, TiledMatrix, row_slices
from .sparse_mask import SparseMask

Tick = Callable[[int, int], None]
Change = Callable[[Tile], Tile]
_BLOCK = 64  # positives that one product makes


@dataclass(frozen=True, eq=False)
class TiledRows(RowsOfS):
    """What a pass over S tells of one direction. sides: of each objective. top: where extremes were asked for."""

    shape: BatchShape
    known: QueryPositives
    sides: dict[Objective, TileAccumulator]
    top: ExtremeTracker | None

    @property
    def extremes(self) -> Extremes:
        assert self.top is not None, "extremes must be asked for before the pass"
        return self.top.extremes()

    @property
    def skipped(self) -> Tensor:
        return ~self.known.usable

    def undecided(self, S: Tensor, rows: slice, dim: int, error: Tensor) -> list[tuple[Undecided, int]]:
        """Bounds of rounded cells that anything asked of this direction needs exactly."""
        asked: list[TileAccumulator | ExtremeTracker] = [
            *self.sides.values(),
            *([] if self.top is None else [self.top]),
        ]
        return [(bounds, dim) for one in asked for bounds in one.undecided(S, rows, dim, error)]

    def counts(self, objective: Objective, eps: float, convention: Convention) -> Counts:
        return self.sides[objective].counts(eps)


@dataclass(frozen=True)
class TilePass:
    """What is asked of a pass: objectives that have a tiled form, thresholds, and whether extremes are wanted.

    rows, columns: of a tile. world: the processes that share the rows. tick: told (done, of) after each tile.
    precision: bf16 makes tiles in bfloat16 and undecided cells exactly, with the same answers.
    """

    objectives: Sequence[Objective]
    eps: Sequence[float]
    extremes: bool = False
    rows: int = ROWS
    columns: int = COLUMNS
    processes: ProcessGroup = field(default_factory=lambda: ProcessGroup(0, 1))
    tick: Tick | None = None
    precision: Literal["float32", "bf16"] = "float32"

    def run(self, matrix: TiledMatrix, relation: SparseMask, shapes: Pair[BatchShape]) -> Pair[TiledRows]:
        """Both directions of the batch; every process gets the whole. Looks at S again where one look did not do.

        Raises InputError where the precision is bf16 and an objective needs every cell exactly.
        """
        space, other = Buffers(), relation.t()
        if self.precision == "bf16":
            require_comparisons(self.objectives)
        half = Bfloat16Tiles(matrix, space) if self.precision == "bf16" else None
        own = half.positives(relation) if half else positive_similarities(matrix, relation)
        turned = own[other.positives.origin]
        i2t = self._begun(QueryPositives(relation.padded(own), relation.negatives.to(own.device)), shapes.i2t, space)
        t2i = self._begun(QueryPositives(other.padded(turned), other.negatives.to(own.device)), shapes.t2i, space)
        off: list[Tensor] = []
        passed = Pair(i2t, t2i)
        hide, best = partial(_hide, relation, own, off), Pair(i2t.known.best, t2i.known.best)
        if half and self.extremes and half.collapsed(partial(_hide, relation, own, []), best, self.rows, self.columns):
            return replace(self, precision="float32").run(matrix, relation, shapes)
        settle = partial(_settle, half, passed, relation, hide, off) if half else None
        for tile in self._tiles(half or matrix, relation, hide, space, settle):
            for objective in self.objectives:
                i2t.sides[objective].add(tile.S, tile.rows, 1)
                t2i.sides[objective].add(tile.S, tile.columns, 0)
            if i2t.top is not None and t2i.top is not None:
                i2t.top.add(tile.S, tile.rows, tile.columns, 1)
                t2i.top.add(tile.S, tile.columns, tile.rows, 0)
        self._merge(passed)
        if self.extremes:
            self._correct(passed, matrix, relation, off)
        again = [(side, dim) for look, dim in ((i2t, 1), (t2i, 0)) for side in look.sides.values() if side.again]
        if again:
            for tile in self._tiles(matrix, relation, hide, space):
                for side, dim in again:
                    side.recount(tile.S, tile.rows if dim == 1 else tile.columns, dim)
            for side, _ in again:
                if self.processes.size > 1:
                    side.merge_again(self.processes.gather(side.state()))
        return passed

    def _begun(self, known: QueryPositives, shape: BatchShape, space: Buffers) -> TiledRows:
        sides = {}
        for objective in self.objectives:
            assert objective.counting_rule is not None, "a pass is for objectives with a tiled form"
            sides[objective] = objective.counting_rule.side(known, self.eps, space, collect=True)
        return TiledRows(shape, known, sides, ExtremeTracker(known, space) if self.extremes else None)

    def _tiles(
        self,
        made: TiledMatrix | Bfloat16Tiles,
        relation: SparseMask,
        hide: Change,
        space: Buffers,
        settle: Change | None = None,
    ) -> Iterator[Tile]:
        """Tiles with −inf where there is no negative."""
        rows, columns = row_slices(relation.queries, self.rows), row_slices(relation.candidates, self.columns)
        mine = rows[self.processes.share(len(rows))]
        for done, tile in enumerate(made.tiles(mine, columns, space)):
            space.next_tile()
            hide(tile)
            yield settle(tile) if settle else tile
            if self.tick:
                self.tick(done + 1, len(mine) * len(columns))

    def _merge(self, passed: Pair[TiledRows]) -> None:
        if self.processes.size == 1:
            return
        for look in passed:
            for side in look.sides.values():
                side.merge(self.processes.gather(side.state()))
            if look.top is not None:
                look.top.merge(self.processes.gather(look.top.state()))

    def _correct(self, passed: Pair[TiledRows], matrix: TiledMatrix, relation: SparseMask, off: list[Tensor]) -> None:
        """Rank those anew whose positive came out with other last bits in its tile than it was compared with.

        A positive must not outrank itself: they are compared with the negatives of one product.
        """
        none = torch.zeros(0, dtype=torch.int64)
        places = torch.cat([none, *(place for part in self.processes.gather(off) for place in part)])
        rows, columns = (torch.unique(c[places]) for c in (relation.positives.rows, relation.positives.columns))
        for look, queries, side in ((passed.i2t, rows, relation), (passed.t2i, columns, relation.t())):
            for part in torch.split(queries, self.rows):
                _rank(look, part, matrix.lines(part, side.direction), side)


def _hide(relation: SparseMask, own: Tensor, off: list[Tensor], tile: Tile) -> Tile:
    """−inf where there is no negative. off: gets places of positives that differ from those known."""
    row, column, place = relation.positives.tile(tile.rows, tile.columns)
    if len(place):
        if not tile.rounded:
            off.append(place[(tile.S[row, column] != own[place]).cpu()])
        tile.S[row, column] = -torch.inf
    row, column, _ = relation.absent.tile(tile.rows, tile.columns)
    if len(row):
        tile.S[row, column] = -torch.inf
    return tile


def _settle(
    half: Bfloat16Tiles, passed: Pair[TiledRows], relation: SparseMask, hide: Change, off: list[Tensor], tile: Tile
) -> Tile:
    """A tile with all cells exact that must be. off: gets positives that cells of a float32 tile may be level with."""
    if tile.rounded:
        rows, columns = half.error(tile)
        bounds = passed.i2t.undecided(tile.S, tile.rows, 1, rows)
        bounds += passed.t2i.undecided(tile.S, tile.columns, 0, columns)
        if half.settled(tile, bounds):
            return tile
        tile = hide(half.product(tile.rows, tile.columns))
    if passed.i2t.top is not None:
        off += half.level(tile, Pair(passed.i2t.known.best, passed.t2i.known.best), relation)
    return tile


def positive_similarities(matrix: TiledMatrix, relation: SparseMask) -> Tensor:
    """(k,) similarities of the positive cells, from products of a few rows, mostly with the last bits of tiles."""
    cells = relation.positives
    found = matrix.any.new_empty(len(cells.rows))
    for start in range(0, len(cells.rows), _BLOCK):
        part = slice(start, min(start + _BLOCK, len(cells.rows)))
        rows, place = torch.unique_consecutive(cells.rows[part], return_inverse=True)
        block = matrix.panel(rows, cells.columns[part])
        found[part] = block[place, torch.arange(len(place))]
    return found


def _rank(passed: TiledRows, queries: Tensor, lines: Tensor, relation: SparseMask) -> None:
    mask = relation.mask(queries).to(lines.device)
    best = lines.masked_fill(~mask.positives, -torch.inf).amax(1)
    assert passed.top is not None
    passed.top.correct(queries, best, lines.masked_fill(mask.non_negatives, -torch.inf))
