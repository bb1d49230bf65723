"""A probe computes numbers of each query, candidate, batch or layer of a view, and statistics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from lossscope.objectives.base import Objective

from .views.view import View

Axis = Literal["query", "candidate", "batch", "layer"]
Merge = Literal["sum", "max", "min"]
ReducerName = Literal[
    "mean", "mean_nonzero", "sum", "zeros", "true", "std", "min", "max", "q10", "q50", "q90", "floor_median", "curve"
]
Reads = Literal["counts", "extremes", "rows", "embeddings", "gradients", "keys"]


@dataclass(frozen=True)
class Accumulator:
    """A number, or a vector, of each element of the probe's axis, and the rule that combines views of an element."""

    value: Tensor
    merge: Merge = "sum"  # not used for axis `query`: views hold whole rows, so their queries are concatenated

    def combine(self, other: Accumulator) -> Accumulator:
        """Combine with another view of the same elements."""
        if self.merge == "sum":
            return Accumulator(self.value + other.value, self.merge)
        extreme = torch.maximum if self.merge == "max" else torch.minimum
        return Accumulator(extreme(self.value, other.value), self.merge)


Accumulators = Mapping[str, Accumulator]
Effects = Mapping[str, Tensor]  # column -> (q, c) effect of each candidate on the number of each query, see `effects`
POSITIVE = "any "  # prefix of a column: the effect on whether its number is above 0


@dataclass(frozen=True)
class Statistic:
    """A number of each batch: a column of the probe, reduced over the elements of the batch.

    NaN and skipped queries are left out, except by the reducer `true`, which counts the elements that are not 0.
    """

    name: str
    column: str
    reducer: ReducerName  # `curve` is the mean over queries of a column of vectors, itself a vector
    unit: str
    is_share: bool = False  # whether the column is 0 or another constant, so that its mean is a share of the queries
    within_one: bool = False  # whether it lies in 0..1 for all data


class Probe:
    """A frozen dataclass whose fields are its options; it defines `reads`, `tile` and `statistics`."""

    axis: ClassVar[Axis] = "query"  # of the elements that have a number
    # parts of a view that it uses: `counts` and `extremes` come from tiles of S in one pass; `rows` (S, mask, W,
    # counted weights), `embeddings`, `gradients` and `keys` need whole rows
    reads: ClassVar[frozenset[Reads]]
    needs_objective: ClassVar[bool] = False  # a probe without objective runs once for all objectives
    cheap: ClassVar[bool] = False  # it costs a few passes over S, and runs if no probe is named

    def tile(self, view: View) -> Accumulators:
        """Return the numbers of one view: query (k·q, ...), candidate (k·c, ...), batch (k, ...), layer (k, layers)."""
        raise NotImplementedError

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        """Return the columns: a number, or a vector, of each element of the axis; no averages."""
        return {name: part.value for name, part in accumulators.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        """Return the statistics of a batch for this objective, which is None if the probe needs none."""
        raise NotImplementedError

    def check(self, objective: Objective) -> None:
        """Raise InputError before any work if the probe does not support the objective; by default it does."""


@runtime_checkable
class HasEffects(Protocol):
    """A probe of queries that states the effect of each candidate on its columns; for other probes it is measured."""

    def effects(self, view: View) -> Effects | None:
        """Return the effect of each candidate on each column (q, c): the number with it, less the number without it.

        0 where an entry is no negative; NaN where the query would have no number. A missing column does not depend on
        candidates. None if the objective does not state its effects.
        """
        ...


@runtime_checkable
class HasCurves(Protocol):
    """A probe with the field `curve`, whose statistics of the reducer `curve` are then numbers at points."""

    def points(self) -> Mapping[str, tuple[float, ...]]:
        """Return statistic -> the points of its numbers."""
        ...


def concatenate(axis: Axis, parts: list[Accumulators]) -> dict[str, Accumulator]:
    """Combine the views of a batch: concatenate queries, merge other elements."""
    total = dict(parts[0])
    for name, first in total.items():
        if axis == "query":
            total[name] = Accumulator(torch.cat([part[name].value for part in parts]), first.merge)
        else:
            for part in parts[1:]:
                total[name] = total[name].combine(part[name])
    return total
