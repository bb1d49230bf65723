"""Fold rows of S whose blocks of columns arrive one after another, as in a ring of processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.block import Block, Buffers, Tile
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.base import Probe
from lossscope.probes.views.view import BatchShape
from lossscope.registry import short_spec

from .blocks.matrix import COLUMNS, ROWS, row_slices
from .direction_rows import HALF_TYPES
from .fold import FoldedRows, folds_of
from .run_probes import ProbePlan, name_of_objective, needs_one_pass
from .shares import Share

_Block = tuple[Tensor, int]  # (rows, w) similarities, and the column of the first


@dataclass
class RingRows:
    """Queries of one direction against all candidates, block by block, in any order of the columns.

    Of a block, only sums and the entries that can still count are kept. A block that arrives before all positives are
    known waits as a whole: so the first block should hold the positives, which are in the process's own columns.
    """

    plan: ProbePlan  # of the direction; its probes take a single pass over tiles
    columns: int  # of all blocks
    offset: int  # row i matches column offset + i
    rows: int | None = field(default=None, init=False)  # known from the first block
    finite: Tensor = field(default_factory=lambda: torch.tensor(True), init=False)  # () whether all entries are
    _covered: list[tuple[int, int]] = field(default_factory=list, init=False)  # ranges of columns so far
    _positives: Tensor = field(default_factory=lambda: torch.zeros(0), init=False)  # (rows,)
    _missing: int = field(default=0, init=False)  # number of positives to come
    _waiting: list[_Block] = field(default_factory=list, init=False)
    _folded: FoldedRows | None = field(default=None, init=False)
    _buffers: Buffers = field(default_factory=Buffers, init=False)

    def add(self, S: Tensor, first: int) -> None:
        """Add a block.

        Args:
            S: (rows, w) similarities; never changed, and not kept once all positives are known.
            first: first column of the block.

        Raises:
            InputError: the number of rows changes, or columns repeat or are out of range.
        """
        self._check(S, first)
        S = S.detach()
        if not len(S):  # the results of a row of zeros give the columns
            S = S.new_zeros(1, S.shape[1])
        self._find_positives(S, first)
        if self._missing:
            self._waiting.append((S.clone(), first))
            return
        if self._folded is None:
            self._start()
            for block in self._waiting:
                self._fold(*block)
            self._waiting.clear()
        self._fold(S, first)

    def share(self) -> Share:
        """Return the results of the probes on all blocks. Raises InputError if columns are missing."""
        came = sum(stop - start for start, stop in self._covered)
        if came < self.columns:
            raise InputError(f"blocks must have all {self.columns} columns; got {came}: {self._ranges()}")
        assert self._folded is not None and self.rows is not None
        return Share(self.plan, self.plan.run(self._folded), self.rows)

    def _check(self, S: Tensor, first: int) -> None:
        if not isinstance(S, Tensor) or S.ndim != 2 or not S.is_floating_point() or not S.shape[1]:
            got = f"{tuple(S.shape)} of {S.dtype}" if isinstance(S, Tensor) else type(S).__name__
            raise InputError(f"a block must be (rows, columns) of floating point; got {got}")
        if self.rows is None:
            if self.offset + len(S) > self.columns:
                raise InputError(
                    f"row i matches column offset + i of {self.columns}; got offset {self.offset} and {len(S)} rows"
                )
            self._begin(S)
        if len(S) != self.rows:
            raise InputError(f"every block must have the same rows, {self.rows}; got {len(S)}")
        stop = first + S.shape[1]
        if first < 0 or stop > self.columns:
            raise InputError(f"columns must be in 0..{self.columns - 1}; got {first}..{stop - 1}")
        if any(start < stop and first < end for start, end in self._covered):
            raise InputError(f"each column must come once; got {first}..{stop - 1} after {self._ranges()}")
        self._covered.append((first, stop))

    def _begin(self, S: Tensor) -> None:
        self.rows = len(S)
        n, dtype = max(len(S), 1), torch.float32 if S.dtype in HALF_TYPES else S.dtype
        self._positives = torch.zeros(n, dtype=dtype, device=S.device)
        self.offset = self.offset if len(S) else 0
        self._missing, self.finite = n, torch.tensor(True, device=S.device)

    def _find_positives(self, S: Tensor, first: int) -> None:
        """Keep the similarities of the positives in a block."""
        start, stop = max(first, self.offset), min(first + S.shape[1], self.offset + len(S))
        if start < stop:
            rows = slice(start - self.offset, stop - self.offset)
            positive = S[rows, start - first : stop - first].diagonal()
            self._positives[rows] = positive.to(self._positives.dtype).nan_to_num(0, 0, 0)
            self._missing -= stop - start

    def _start(self) -> None:
        """Start the folds, as all positives are known."""
        n, device = len(self._positives), self._positives.device
        positives = QueryPositives(self._positives[:, None], torch.full((n,), self.columns - 1, device=device))
        shape = BatchShape(1, self.plan.direction, torch.arange(n), torch.arange(self.columns)[None], False)
        self._folded = FoldedRows(shape, positives, folds_of(self.plan, positives, "all"))

    def _fold(self, S: Tensor, first: int) -> None:
        """Add a block; of equal hardest negatives the lowest column wins, in any order of blocks."""
        assert self._folded is not None
        folds = {key: kept.start(kept.known()) for key, kept in self._folded.folds.items()}
        for rows in row_slices(len(S), ROWS):
            for part in row_slices(S.shape[1], COLUMNS):
                columns = slice(first + part.start, first + part.stop)
                tile = Tile(self._tile(S[rows, part], rows, columns), rows, columns, self._buffers)
                for of_block in folds.values():
                    of_block.add(Block(tile))
        for key, of_block in folds.items():
            self._folded.folds[key].merge(of_block)

    def _tile(self, S: Tensor, rows: slice, columns: slice) -> Tensor:
        """Return a copy of a part of a block, with −inf on positives and zeros in place of NaN and Inf."""
        tile = self._buffers.get("ring", tuple(S.shape), self._positives.dtype, self._positives.device)
        tile.copy_(S)
        self.finite = self.finite & tile.isfinite().all()
        tile.nan_to_num_(0, 0, 0)
        start = max(columns.start, self.offset + rows.start)
        stop = min(columns.stop, self.offset + rows.stop)
        if start < stop:
            row = start - self.offset - rows.start
            tile[row : row + stop - start, start - columns.start : stop - columns.start].fill_diagonal_(-torch.inf)
        return tile

    def _ranges(self) -> str:
        return ", ".join(f"{start}..{stop - 1}" for start, stop in sorted(self._covered)) or "none"


def require_blocks(objective: Objective, probes: Sequence[Probe]) -> None:
    """Raise InputError for an objective and probes that need whole rows."""
    for probe in probes:
        of_objective = objective if probe.needs_objective else None
        if not needs_one_pass(of_objective, probe):
            under = "" if of_objective is None else f" under {name_of_objective(objective)}"
            raise InputError(
                f"{short_spec(probe)}{under} needs whole rows of S, and a ring keeps sums over its blocks. Leave it "
                "out, or watch whole rows"
            )
