"""What one loss saw in one batch: rows of S with their mask, and its own value; and who keeps the statistics of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.direction_rows import DirectionRows
from lossscope.objectives.base import Objective

Row = dict[str, float]  # `finite` and the statistics of one step
MOST_ENTRIES = 2**24  # of S: the first rows of a larger batch are looked at, where rows do not influence each other


@dataclass(frozen=True)
class Observed:
    """Rows of S of one batch; or numbers alone, of a loss of single pairs, which has no S."""

    rows: DirectionRows | None  # of the first direction
    sides: Sides = IMAGE_TEXT
    directions: tuple[Direction, ...] = DIRECTIONS
    second: DirectionRows | None = None  # of the second direction, where they are not S transposed
    objective: Objective | None = None  # what the loss is; None: that of the LossScope
    value: Tensor | None = None  # () the loss of these rows, as its own code computed it
    name: str = ""  # stands before the names of its statistics, such as `dim64`
    numbers: Mapping[str, Tensor] = field(default_factory=dict)  # further statistics, () each
    has_unit_vectors: bool = True  # whether the embeddings of the rows are of unit length
    # of both sides as they were given, before anything normalises them; None: those of the rows, if any
    embeddings: tuple[Tensor, Tensor] | None = None
    offset: int | None = None  # column of the positive of the first row, where it was given
    mined: int = 0  # mined negatives of each query, whose columns stand query by query behind the positives

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of S; of single pairs (0, 0)."""
        return (0, 0) if self.rows is None else (self.rows.S.shape[0], self.rows.S.shape[1])

    def limited(self) -> Observed:
        """Return the first rows of a batch of more than MOST_ENTRIES similarities, and as it is any other."""
        if self.rows is None or self.rows.S.numel() <= MOST_ENTRIES:
            return self
        second = self.second
        if len(self.directions) > 1:
            second = _first_rows(self.rows.t() if second is None else second)
        return replace(self, rows=_first_rows(self.rows), second=second, embeddings=None).of_first_rows()

    def of_first_rows(self) -> Observed:
        """Return the same as part of a batch: with the number of its rows, without the value, which is of all rows."""
        assert self.rows is not None
        numbers = {**self.numbers, f"{self.sides.label('i2t')}/rows": torch.tensor(len(self.rows.S))}
        return replace(self, numbers=numbers, value=None)

    def column(self, statistic: str) -> str:
        """Return the name of a statistic in a row: `dim64/q2d/C_neg`."""
        return f"{self.name}/{statistic}" if self.name else statistic


def _first_rows(rows: DirectionRows) -> DirectionRows:
    """Return as many rows as have at most MOST_ENTRIES similarities, at least one."""
    first = torch.arange(max(MOST_ENTRIES // rows.S.shape[1], 1), device=rows.S.device)
    queries = None if rows.queries is None else rows.queries[first]
    return DirectionRows(rows.S[first], rows.mask.rows(first), queries, rows.candidates)


Result = tuple[Any, list[Observed]]  # what a loss returned, and what it saw


class Scope(Protocol):
    """What losses and callbacks need of a LossScope."""

    def next_step(self, step: int | None = None) -> int | None:
        """Return the number of a step that is watched; None of one that is skipped."""
        ...

    def record(self, observed: Sequence[Observed], step: int) -> Row:
        """Compute the statistics of a step and keep them."""
        ...
