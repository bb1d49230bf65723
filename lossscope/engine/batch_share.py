"""The queries of a batch that one process has, against all candidates, and the statistics of the queries of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Accumulator, Accumulators, Probe, Reducer, reduce_column
from lossscope.registry import short_spec, spec_of

from .direction_plan import DirectionPlan, stack_columns
from .large_batches import needs_whole_matrix
from .partial_sums import BY_ORDER, partial_length, partial_sums, statistic_of_parts
from .run_probes import ProbeResult

_Members = Sequence[tuple[int, int, str]]  # (index of a statistic, index of a result, column)
_Keys = dict[tuple[int, str], int]  # (index of a result, column) -> its place among the values that are passed on


@dataclass(frozen=True)
class DirectionShare:
    """What the probes computed of some queries of one direction.

    Means, sums and numbers of queries are passed on as sums, a quantile as all of its values. What is no number of a
    query, as how often a candidate is the hardest negative, is merged as its probe says.
    """

    plan: DirectionPlan
    results: Sequence[ProbeResult]
    rows: int  # queries; 0: the results are of a row in their place, and only say which shapes there are

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each number of `merge`."""
        return self.plan.columns

    @property
    def queries(self) -> int:
        """Queries that these are of: all are looked at."""
        return self.rows

    def numbers(self) -> Tensor:
        """(k,) float64: what these queries add."""
        parts = [partial_sums(reducer, *self._values(members)) for reducer, members in self._sums()]
        if self._ordered:
            parts.append(partial_sums("q50", *self._values([(0, *key) for key in self._ordered])))
        if self.rows:
            parts += [part.value.double() for result in self._not_of_queries for part in result.accumulators.values()]
        return torch.cat([part.flatten() for part in parts]) if parts else torch.zeros(0, dtype=torch.float64)

    def merge(
        self, rows: Sequence[int], queries: Sequence[int], numbers: Sequence[Tensor]
    ) -> tuple[list[float], list[Tensor]]:
        """Return the statistics of the queries of all processes, and what is left of the numbers of each.

        Args:
            rows: number of queries of each process, by rank.
            queries: the same.
            numbers: of each process, those of this direction first.
        """
        parts = [_Numbers(x) for x in numbers]
        merged = torch.full((len(self.plan.statistics),), torch.nan, dtype=torch.float64)
        for reducer, members in self._sums():
            m = len(members)
            taken = [part.take(partial_length(reducer, n), m) for part, n in zip(parts, rows, strict=True)]
            merged[[index for index, _, _ in members]] = statistic_of_parts(reducer, taken)
        values = [part.take(n, len(self._ordered)) for part, n in zip(parts, rows, strict=True)]
        for reducer, members in self._quantiles():
            places = [self._ordered[result, name] for _, result, name in members]
            merged[[index for index, _, _ in members]] = statistic_of_parts(reducer, [one[:, places] for one in values])
        some = [part for part, n in zip(parts, rows, strict=True) if n]
        for result in self._not_of_queries:
            columns = result.probe.finish(_merge_accumulators(result.accumulators, some))
            for index, (place, _, _, statistic) in enumerate(self.plan.statistics):
                if self.results[place] is result:
                    merged[index] = reduce_column(statistic, columns, 1)[0]
        return merged.tolist(), [part.rest for part in parts]

    def _sums(self) -> Iterator[tuple[Reducer, _Members]]:
        """Yield the statistics of queries that follow from sums, those of one reducer together."""
        for (reducer, axis), members in self.plan.groups.items():
            if axis == "query" and reducer not in BY_ORDER:
                yield reducer, members

    def _quantiles(self) -> Iterator[tuple[Reducer, _Members]]:
        """Yield the statistics of queries that need every value, those of one reducer together."""
        for (reducer, axis), members in self.plan.groups.items():
            if axis == "query" and reducer in BY_ORDER:
                yield reducer, members

    @cached_property
    def _ordered(self) -> _Keys:
        """The columns that quantiles are of, each of which is passed on once."""
        keys = dict.fromkeys((result, name) for _, members in self._quantiles() for _, result, name in members)
        return {key: place for place, key in enumerate(keys)}

    @property
    def _not_of_queries(self) -> list[ProbeResult]:
        return [one for one in self.results if one.probe.axis != "query"]

    def _values(self, members: _Members) -> tuple[Tensor, Tensor]:
        """(n, m) columns of the queries, and bool which of them count."""
        columns = {result: self.results[result].columns() for _, result, _ in members}
        values = stack_columns([columns[result][name] for _, result, name in members])[: self.rows].double()
        skipped = self.results[members[0][1]].skipped[: self.rows]
        return values, ~values.isnan() & ~skipped[:, None]


@dataclass
class _Numbers:
    """Numbers of a process, taken one block after another."""

    rest: Tensor

    def take(self, *shape: int) -> Tensor:
        """Return the next numbers in a shape."""
        size = torch.Size(shape).numel()
        taken, self.rest = self.rest[:size].view(shape), self.rest[size:]
        return taken


def _merge_accumulators(own: Accumulators, parts: Sequence[_Numbers]) -> Accumulators:
    """Return the accumulators of all processes that have queries; `own` says their shapes and types."""
    merged = {}
    for name, one in own.items():
        every = [Accumulator(part.take(*one.value.shape).to(one.value.dtype), one.merge) for part in parts]
        total = every[0]
        for other in every[1:]:
            total = total.combine(other)
        merged[name] = total
    return merged


def require_shares(objective: Objective, probes: Sequence[Probe]) -> None:
    """Raise InputError for an objective and probes whose numbers do not follow from those of parts of the queries."""
    for probe in probes:
        if probe.axis != "query" and "embeddings" in probe.reads and getattr(probe, "needs_all_queries", True):
            raise InputError(
                f"{short_spec(probe)} is of the embeddings of all queries of a batch, of which each process has "
                "its own alone. Leave it out, or watch whole batches"
            )
        if probe.needs_objective and needs_whole_matrix(objective, probe):
            raise InputError(
                f"the numbers of a query depend on other queries under {name_of_objective(objective)} with "
                f"{short_spec(probe)}, so that rows of one process are not enough. Leave it out, or watch whole batches"
            )


def name_of_objective(objective: Objective) -> str:
    """Return the spec of an objective; the name of its type where it has none."""
    try:
        return spec_of(objective)
    except Exception:  # of any kind, as objectives of users may be
        return type(objective).__name__
