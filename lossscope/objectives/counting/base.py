"""What a counting rule is: the counts of a row from its similarities and a few sums, whole or tile by tile.

The negatives of a row come as tiles; its positives are known before the first tile. A `TileAccumulator` collects what
one direction of a batch needs: sums that can be merged in any order, and the few entries of S that can still count.
Shapes: n queries, p positives of a query (padded); a tile is (r, w), its queries are the rows (dim 1) or the columns
(dim 0).
Whether an entry counts depends on its similarity alone, s > cut. The cut is computed in float64 from float64 sums and
rounded once to the type of S, so that tiles of any shape and any number of processes give the same counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from lossscope.core.counts import Counts

from .buffers import Buffers
from .concentration import Concentration
from .effects import CountEffects
from .rows import QueryPositives, WholeRows


class RowCounts(ABC):
    """The counts of whole rows under one objective."""

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""

    def concentration(self) -> Concentration | None:
        """Return how concentrated the weights are; None where that takes every single weight."""
        return None

    def effects(self, eps: float) -> CountEffects | None:
        """Return the effect of each candidate on the counts; None where the rule does not state it."""
        return None


class TileAccumulator(ABC):
    """The sums of n queries of one direction under one objective, accumulated tile by tile.

    Entries of a tile that are not negatives are −inf.
    """

    @abstractmethod
    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Add a tile.

        Args:
            tile: (r, w).
            rows: the queries of the tile.
            dim: 1 where they are its rows, 0 where they are its columns.
        """

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Count the entries of a tile in a second pass, after all tiles were added, if `needs_second_pass`."""
        raise NotImplementedError("one pass is enough")

    @property
    def needs_second_pass(self) -> bool:
        """Whether the counts need a second pass over every tile."""
        return False

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """Return the counts of all n queries; eps must be one of those it was created with."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what other processes need for `merge`."""

    @abstractmethod
    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        """Replace the sums by those over all processes, each of which added other tiles."""

    def merge_second_pass(self, states: Sequence[dict[str, Any]]) -> None:
        """Replace the counts of the second pass by those over all processes."""
        raise NotImplementedError("one pass is enough")

    def keep_all_that_count(self) -> None:  # noqa: B027 - most keep none
        """Keep every entry that can still count, however many: tiles come once, so that there is no second pass."""

    def drop_entries(self) -> None:  # noqa: B027 - most keep none
        """Discard kept entries that cannot count by the sums so far: after many merges there may be too many."""


class CountingRule(Protocol):
    """A frozen dataclass of the numbers in which the objectives of one family differ."""

    def accumulator(
        self, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> TileAccumulator:
        """Return an accumulator for the tiles of one direction.

        Args:
            positives: of the n queries.
            eps: thresholds that will be counted.
            buffers: memory for intermediate results.
            collect: keep the entries that can still count, so that one pass may be enough.
        """
        ...

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, equal to those of an accumulator."""
        ...


@dataclass(frozen=True, eq=False)
class OneTileCounts(RowCounts):
    """Whole rows counted as one tile by the accumulator of a rule."""

    rule: CountingRule
    whole: WholeRows

    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""
        accumulator = self.rule.accumulator(self.whole.query_positives, [eps], Buffers(), collect=False)
        rows = slice(0, len(self.whole.S))
        accumulator.add(self.whole.negatives, rows, 1)
        if accumulator.needs_second_pass:
            accumulator.recount(self.whole.negatives, rows, 1)
        return accumulator.counts(eps)


def fill_skipped(values: Tensor, usable: Tensor) -> Tensor:
    """Return the values, (n,), with 0 in skipped rows."""
    return values.where(usable, 0.0)
