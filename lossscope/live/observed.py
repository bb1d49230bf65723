"""Hold what a loss saw in a batch: rows of S with their mask, and its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from lossscope.core.relations import Relations
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import DIRECTIONS, Direction, Rows
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.sampled.draw import draw_queries
from lossscope.objectives.base import Objective

Row = dict[str, float]  # `finite` and the statistics of one step
RECORDER_BYTES = 256_000_000  # of the tensors and ids of the steps that the flight recorder keeps
MOST_ENTRIES = 2**24  # of S; of a larger batch a sample of the rows is read


@dataclass(frozen=True)
class Observed:
    """Rows of S of a batch; or only numbers, for a loss of single pairs, which has no S."""

    rows: DirectionRows | None  # of the first direction
    sides: Sides = IMAGE_TEXT
    directions: tuple[Direction, ...] = DIRECTIONS
    second: DirectionRows | None = None  # of the second direction, where they are not S transposed
    objective: Objective | None = None  # that equals the loss; None: the objective of the LossScope
    value: Tensor | None = None  # () the loss of these rows, computed by its own code
    name: str = ""  # prefix of the names of its statistics, such as `dim64`
    numbers: Mapping[str, Tensor] = field(default_factory=dict)  # further statistics, () each
    has_unit_vectors: bool = True  # whether the embeddings of the rows have unit length
    # of both sides as given, not normalised; None: those of the rows, if any
    embeddings: tuple[Tensor, Tensor] | None = None
    offset: int | None = None  # column of the positive of the first row, where given
    # row i matches column pairs_at + i in every direction, and nothing else, all entries valid; None: see the masks
    pairs_at: int | None = None
    # number of queries in each direction from which the rows were drawn; None: all rows, or the first rows
    drawn_from: tuple[int, ...] | None = None
    mined: int = 0  # mined negatives of each query; their columns follow the positives, query by query

    @property
    def first(self) -> DirectionRows:
        """The rows of the first direction, for a loss that has an S."""
        assert self.rows is not None
        return self.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of S; (0, 0) for single pairs."""
        return (0, 0) if self.rows is None else (self.rows.S.shape[0], self.rows.S.shape[1])

    @property
    def vectors(self) -> tuple[Tensor, Tensor] | None:
        """The embeddings of both sides, as given or else of the rows; None where unknown."""
        rows = self.rows
        if self.embeddings is not None or rows is None or rows.queries is None or rows.candidates is None:
            return self.embeddings
        return rows.queries, rows.candidates

    def of_directions(self) -> list[DirectionRows]:
        """Return the rows of each direction."""
        if len(self.directions) == 1:
            return [self.first]
        return [self.first, self.first.t() if self.second is None else self.second]

    def relations(self) -> Relations:
        """Return the positives and mined negatives between rows and columns, or the labels of one set."""
        match = self.first.mask.positives.cpu()
        n, m = match.shape
        if self.sides.is_one_set:
            return Relations.of_labels(labels_of(match), self.sides.first)
        negatives = None
        if self.mined and m == n * (1 + self.mined):
            negatives = n + np.arange(n * self.mined, dtype=np.int64).reshape(n, self.mined)
        return Relations(n, m, match.nonzero().numpy().astype(np.int64), self.sides, None, negatives)

    def limited(self) -> Observed:
        """Return random rows if the batch has more than MOST_ENTRIES similarities, else the whole batch.

        All batches of one size use the same rows.
        """
        if self.rows is None or self.rows.S.numel() <= MOST_ENTRIES:
            return self
        rows = self.of_directions()
        drawn = [_random_rows(of_direction, way) for of_direction, way in zip(rows, self.directions, strict=True)]
        return replace(
            self, rows=drawn[0], second=drawn[1] if len(drawn) > 1 else None, embeddings=None, value=None,
            drawn_from=tuple(len(of_direction.S) for of_direction in rows),
        )  # fmt: skip

    def of_first_rows(self) -> Observed:
        """Return this as a part of a batch, with its number of rows and without the value of all rows."""
        numbers = {**self.numbers, f"{self.sides.label('i2t')}/rows": torch.tensor(len(self.first.S))}
        return replace(self, numbers=numbers, value=None)


def _random_rows(rows: DirectionRows, direction: Direction) -> DirectionRows:
    """Return random rows with at most MOST_ENTRIES similarities, at least one row."""
    number = min(max(MOST_ENTRIES // rows.S.shape[1], 1), len(rows.S))
    drawn = torch.from_numpy(draw_queries(len(rows.S), 0, number, 0, direction)).to(rows.S.device)
    queries = None if rows.queries is None else rows.queries[drawn]
    return DirectionRows(rows.S[drawn], rows.mask.rows(drawn), queries, rows.candidates)


def labels_of(match: Tensor) -> Rows:
    """Return a label of each item of one set, (n,): the first item that it matches, or itself."""
    same = match | torch.eye(len(match), dtype=torch.bool)
    labels: Rows = same.to(torch.uint8).argmax(1).numpy().astype(np.int64)
    return labels


Result = tuple[Any, list[Observed]]  # result of a loss, and what it saw


class Scope(Protocol):
    """The methods of a LossScope that losses and callbacks use."""

    def next_step(self, step: int | None = None) -> int | None:
        """Return the number of a watched step; None for a skipped step."""
        ...

    def record(self, observed: Sequence[Observed], step: int) -> Row:
        """Compute the statistics of a step and keep them."""
        ...
