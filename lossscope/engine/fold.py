"""Fold S block by block and band by band, then merge the folds of the bands in their order.

Bands are independent, and threads and processes share them. The result does not depend on who computed a band, nor on
when: any number of threads and processes, and a pass that was killed and resumed, give the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from lossscope.core.counts import Counts
from lossscope.core.distributed import ProcessGroup
from lossscope.core.types import Convention, OnStep
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.block import Buffers, Tile
from lossscope.objectives.counting.extremes import ExtremesFold, RankFold
from lossscope.objectives.counting.fold import Fold, Keep
from lossscope.objectives.counting.rows import QueryPositives, WholeRows
from lossscope.probes.views.view import BatchShape, Extremes, RowsOfS

from .blocks.sparse_mask import SparseMask
from .run_probes import ProbePlan
from .sampled.checkpoint import StripsFile
from .workers import ALONE, Workers

EXTREMES = "extremes"  # key of their fold; those of objectives are the objectives


class Blocks(Protocol):
    """S of one batch, whose tiles are computed on demand; rows are of the first side."""

    @property
    def number(self) -> int:
        """Number of bands; depends on the source alone."""
        ...

    def positives(self, mask: SparseMask) -> Tensor:
        """(k,) similarities of the positive entries of a mask; its rows are of the first side."""
        ...

    def tiles(self, band: int, buffers: Buffers) -> Iterator[Tile]:
        """Yield the tiles of a band; the tiles of a query come in the order of its candidates."""
        ...

    def whole_rows(self, queries: Tensor, mask: SparseMask) -> Iterator[tuple[Tensor, Tensor]] | None:
        """Yield some of the queries and their whole rows of S; None if it is faster to read them band by band."""
        ...


Wanted = Callable[[SparseMask, QueryPositives], Mapping[Any, Fold]]  # folds to compute for a direction


@dataclass(frozen=True, eq=False)
class FoldedRows(RowsOfS):
    """Rows of S in one direction, reduced to what the folds keep.

    `differing` indexes, in the mask, the positives whose last bits in their tile differ from `positives`.
    """

    shape: BatchShape
    positives: QueryPositives
    folds: dict[Any, Any]  # by objective, and EXTREMES
    differing: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))

    @property
    def dim(self) -> int:
        """1 if queries are the rows of tiles, 0 if they are the columns."""
        return 1 if self.shape.direction == "i2t" else 0

    @property
    def extremes(self) -> Extremes:
        kept: ExtremesFold = self.folds[EXTREMES]
        none, above, at_least = kept.hardest == -torch.inf, kept.above[:, 0], kept.at_least[:, 0]
        return Extremes(
            kept.best.where(kept.best > -torch.inf, torch.nan),
            kept.hardest.where(~none, torch.nan),
            kept.column.where(~none, -1),
            above.long(),
            (at_least - above).long(),
        )

    @property
    def skipped(self) -> Tensor:
        return ~self.positives.usable

    def counts(self, objective: Objective, eps: float, convention: Convention) -> Counts:
        counts: Counts = self.folds[objective].counts(eps)
        return counts


def folds_of(plan: ProbePlan, positives: QueryPositives, keep: Keep = "some") -> dict[Any, Fold]:
    """Return a fold for each objective of a plan, and a fold of extremes if a probe reads them.

    Args:
        plan: a plan that takes a single pass; each objective has a counting rule.
        positives: of the queries.
        keep: which entries to keep, see `CountingRule.fold`.
    """
    folds: dict[Any, Fold] = {}
    for objective in plan.objectives:
        assert objective.counting_rule is not None, "a fold is of an objective with a counting rule"
        folds[objective] = objective.counting_rule.fold(positives, plan.eps, keep)
    return {**folds, EXTREMES: ExtremesFold(positives)} if "extremes" in plan.reads else folds


@dataclass(frozen=True)
class Execution:
    """How a pass runs: processes, threads, checkpoint and progress. No bit of a number depends on it."""

    group: ProcessGroup = ProcessGroup(0, 1)  # noqa: RUF009 - never changed; processes that share the bands
    store: StripsFile | None = None  # file with the folds of finished bands, from which a killed pass resumes
    on_band: OnStep | None = None  # called after each band
    workers: Workers = ALONE  # threads that take bands


def fold(
    blocks: Blocks,
    mask: SparseMask,
    shapes: Sequence[BatchShape],
    wanted: Wanted,
    execution: Execution = Execution(),
) -> list[FoldedRows]:
    """Return the folded rows of directions of S, whole in every process.

    A second pass runs if the first was not enough: more entries may count than the folds kept, or a positive has other
    last bits in its tile, which decide its rank.

    Args:
        blocks: S.
        mask: its rows are of the first side, as in tiles.
        shapes: of the directions.
        wanted: returns the folds of a direction from its mask and its positives.
        execution: processes and threads that share the bands.
    """
    positives = blocks.positives(mask)
    passes = _Pass(blocks, mask, positives, execution)
    directions = []
    for shape in shapes:
        of_direction, similarities = mask, positives
        if shape.direction != mask.direction:
            of_direction = mask.t()
            similarities = positives[of_direction.positives.origin.to(positives.device)]
        number_of_negatives = of_direction.number_of_negatives.to(positives.device)
        of_queries = QueryPositives(of_direction.by_query(similarities), number_of_negatives)
        directions.append(FoldedRows(shape, of_queries, dict(wanted(of_direction, of_queries))))
    keys = list(dict.fromkeys(key for rows in directions for key in rows.folds))
    # both directions of an objective stand together: they share the exponentials of a tile
    folds = [(rows, key) for key in keys for rows in directions if key in rows.folds]
    first = passes.run("first", [(rows.dim, rows.folds[key]) for rows, key in folds])
    second: list[tuple[Fold, _Task]] = []  # a fold, and its task in the second pass
    for (rows, key), kept in zip(folds, first.folds, strict=True):
        rows.folds[key] = kept
        again = kept.again()
        if again is not None:
            second.append((kept, (rows.dim, again)))
    if second:
        more = passes.without_store().run("second", [task for _, task in second])
        for (kept, _), of_kept in zip(second, more.folds, strict=True):
            kept.finish(of_kept)
    directions = [replace(rows, differing=first.differing) for rows in directions]
    for rows in directions:
        if EXTREMES in rows.folds and len(rows.differing):
            passes.rank_again(rows, first)
    return directions


@dataclass(eq=False)
class _Kept:
    """The folds of several bands, and the positives whose last bits differ in their tiles."""

    folds: list[Fold]
    entries: list[Tensor] = field(default_factory=list)  # indices of these positives in the mask
    values: list[Tensor] = field(default_factory=list)  # their similarities in the tiles

    @property
    def differing(self) -> Tensor:
        """(k,) indices of these positives in the mask."""
        return torch.cat([torch.zeros(0, dtype=torch.int64), *self.entries])

    def merge(self, later: _Kept) -> None:
        """Add the folds of later bands."""
        for kept, other in zip(self.folds, later.folds, strict=True):
            kept.merge(other)
        self.entries, self.values = [*self.entries, *later.entries], [*self.values, *later.values]

    def numbers(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {"states": [kept.numbers() for kept in self.folds], "places": self.entries, "values": self.values}

    def load(self, numbers: dict[str, Any]) -> None:
        """Restore the state from the values of `numbers`."""
        for kept, state in zip(self.folds, numbers["states"], strict=True):
            kept.load(state)
        self.entries, self.values = numbers["places"], numbers["values"]


_Task = tuple[int, Fold]  # dim of a direction, and its fold


@dataclass(frozen=True, eq=False)
class _Pass:
    """Passes over the bands of one S."""

    blocks: Blocks
    mask: SparseMask
    positives: Tensor
    execution: Execution

    def without_store(self) -> _Pass:
        """Return the same passes without a checkpoint."""
        return replace(self, execution=replace(self.execution, store=None))

    def run(self, step: str, tasks: Sequence[_Task]) -> _Kept:
        """Return the folds of all bands; resume if the store has the folds of the first bands."""
        number, group = self.blocks.number, self.execution.group
        store = self.execution.store if group.main else None
        done, numbers = group.gather((0, None) if store is None else store.load(step))[0]
        total: _Kept | None = None
        if numbers is not None:
            of_all = self.execution.store  # of every process
            with nullcontext() if of_all is None else of_all.restoring():
                total = self._load(tasks, to_device(numbers, self.positives.device))
        known = _Known(done, number, self._lag, [None] * len(tasks))
        try:
            for kept in self._in_order(tasks, done, known):
                if total is None:
                    total = kept
                else:
                    total.merge(kept)
                known.append([merged.known() for merged in total.folds])
                done += 1
                if store is not None:
                    store.save(step, done, total.numbers, done == number)
                if self.execution.on_band:
                    self.execution.on_band(done, number)
        except BaseException:  # such as Ctrl-C: keep the finished bands
            if store is not None:
                store.write()
            raise
        assert total is not None, "there is at least one band"
        return total

    @property
    def _lag(self) -> int:
        """How many of the bands just before it a band ignores, and so how many bands can be computed at a time.

        It must not depend on the number of workers, nor on where a pass was resumed: with a store, no band uses the
        results of others.
        """
        if self.execution.store is not None:
            return self.blocks.number + 1
        return min(max(self.blocks.number // 16, 2), 16)

    def _in_order(self, tasks: Sequence[_Task], done: int, known: _Known) -> Iterator[_Kept]:
        """Yield the folds of each band, in order; a band starts when the folds that it uses are merged."""
        group, workers, number = self.execution.group, self.execution.workers, self.blocks.number
        ahead = max(self._lag // group.size, 1)

        def fold_band(piece: tuple[int, list[Any]], buffers: Buffers) -> _Kept:
            return self._fold_band(tasks, *piece, buffers)

        if group.is_alone:
            yield from workers.run(fold_band, ((band, known.of(band)) for band in range(done, number)), ahead)
            return
        size = min(group.size * workers.jobs, self._lag)
        for first in range(done, number, size):
            bands = range(first, min(first + size, number))
            mine = bands[group.rank :: group.size]
            kept = workers.run(fold_band, [(band, known.of(band)) for band in mine], ahead)
            of_all = group.gather({band: states.numbers() for band, states in zip(mine, kept, strict=True)})
            for band in bands:
                numbers = of_all[(band - first) % group.size][band]
                yield self._load(tasks, to_device(numbers, self.positives.device))

    def _load(self, tasks: Sequence[_Task], numbers: dict[str, Any]) -> _Kept:
        kept = _Kept([kind.start() for _, kind in tasks])
        kept.load(numbers)
        return kept

    def _fold_band(self, tasks: Sequence[_Task], band: int, known: list[Any], buffers: Buffers) -> _Kept:
        kept = _Kept([kind.start(before) for (_, kind), before in zip(tasks, known, strict=True)])
        for tile in self.blocks.tiles(band, buffers):
            self._hide(tile, kept)
            by_dim = dict(zip((1, 0), tile.both, strict=True))
            for (dim, _), band_fold in zip(tasks, kept.folds, strict=True):
                band_fold.add(by_dim[dim])
        return kept

    def _hide(self, tile: Tile, kept: _Kept) -> None:
        """Set the entries of a tile that are not negatives to −inf, in place, and collect the positives that differ."""
        row, column, index = self.mask.positives.tile(tile.rows, tile.columns)
        if len(index):
            values = tile.S[row, column]
            differs = values != self.positives[index]
            if bool(differs.any()):
                kept.entries.append(index[differs.cpu()])
                kept.values.append(values[differs])
            tile.S[row, column] = -torch.inf
        row, column, _ = self.mask.invalid.tile(tile.rows, tile.columns)
        if len(row):
            tile.S[row, column] = -torch.inf

    def rank_again(self, rows: FoldedRows, first: _Kept) -> None:
        """Rank again the queries with a positive whose last bits in its tile differ from `positives`.

        A positive must not outrank itself, so this pass compares positives and negatives of the same product.
        """
        extremes: ExtremesFold = rows.folds[EXTREMES]
        index, entries, is_first = rows.differing, self.mask.positives, rows.dim == 1
        queries = torch.unique((entries.rows if is_first else entries.columns)[index])
        mask = self.mask if is_first else self.mask.t()
        chunks = self.blocks.whole_rows(queries, mask)
        if chunks is not None:
            for chunk, S in chunks:
                whole = WholeRows.from_rows(S, mask.mask(chunk).to(S.device))
                best = whole.query_positives.best
                above = whole.above(best).sum(1).double()
                extremes.above[chunk, 0] = above
                extremes.at_least[chunk, 0] = above + whole.equal_to(best).sum(1)
            return
        in_tiles = self.positives.clone()
        in_tiles[index] = torch.cat(first.values)
        by_query = mask.by_query(in_tiles if is_first else in_tiles[mask.positives.origin])
        kept = self.without_store().run("ranks", [(rows.dim, RankFold(by_query.amax(1, keepdim=True)))])
        doubtful, again = queries.to(extremes.best.device), kept.folds[0]
        assert isinstance(again, RankFold)
        extremes.above[doubtful], extremes.at_least[doubtful] = again.above[doubtful], again.at_least[doubtful]


class _Known:
    """What a band may use of the bands up to `lag` before it."""

    def __init__(self, done: int, number: int, lag: int, nothing: list[Any]) -> None:
        self._first, self._number, self._lag, self._nothing = done, number, lag, nothing
        self._after: deque[list[Any]] = deque(maxlen=lag + 1)  # state after each of the last bands

    def append(self, known: list[Any]) -> None:
        """Add the state after the next band."""
        if self._lag > self._number:
            return
        if len(self._after) == self._lag + 1:
            self._first += 1
        self._after.append(known)

    def of(self, band: int) -> list[Any]:
        """Return what a band may use."""
        index = band - self._lag - self._first - 1
        return self._after[index] if index >= 0 else self._nothing


def to_device(numbers: Any, device: torch.device) -> Any:
    """Return plain values with their tensors on a device."""
    if isinstance(numbers, Tensor):
        return numbers.to(device)
    if isinstance(numbers, dict):
        return {name: to_device(value, device) for name, value in numbers.items()}
    if isinstance(numbers, list | tuple):
        return type(numbers)(to_device(value, device) for value in numbers)
    return numbers
