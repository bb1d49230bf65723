"""Merge the queries of all processes, each against all candidates, into the statistics of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from lossscope.core.intervals import NO_INTERVAL
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Accumulator, Accumulators, Probe
from lossscope.registry import short_spec

from .reducers import REDUCERS, reduce_column
from .run_probes import ProbePlan, ProbeResult, name_of_objective, needs_whole_matrix
from .sampled.estimates import estimate
from .statistics import Group, groups_of


@dataclass(frozen=True)
class Share:
    """The results of the probes on the queries of one process in one direction.

    A random sample of queries passes its columns on, and statistics are estimates with an interval. All other queries
    pass on the part that they add to each statistic: sums, or every value of a quantile. Columns of other elements,
    such as how often a candidate is the hardest negative, are merged as their probe says; with a sample they come from
    the queries of this process alone.
    """

    plan: ProbePlan  # of the direction
    results: Sequence[ProbeResult]  # in the order of the plan
    rows: int  # number of queries; 0: the results are of a row of zeros, and give shapes only
    drawn_from: int | None = None  # number of queries that the sample was drawn from; None: these are all queries

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each number of `merge`: `q2d/C_neg`; for a sample also the bounds `_low`, `_high`, and `q2d/rows`."""
        if self.drawn_from is None:
            return self.plan.columns
        ends = (f"{name}{end}" for name in self.plan.columns for end in ("", "_low", "_high"))
        return (*ends, f"{self.plan.sides.label(self.plan.direction)}/rows")

    @property
    def queries(self) -> int:
        """Number of queries that the statistics describe."""
        return self.rows if self.drawn_from is None else self.drawn_from

    def numbers(self) -> Tensor:
        """(k,) float64 numbers that this process passes on."""
        if self.drawn_from is not None:
            parts = [self.results[index].columns[name][: self.rows].double() for index, name in self._columns]
        else:
            parts = [group.part(self.results, self.rows).flatten() for group in self._groups]
            if self.rows:
                of_others = (part for result in self._of_no_queries for part in result.accumulators.values())
                parts += [part.value.double().flatten() for part in of_others]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)

    def merge(
        self, rows: Sequence[int], queries: Sequence[int], numbers: Sequence[Tensor]
    ) -> tuple[list[float], list[Tensor]]:
        """Return a value for each of `names`, and the remaining numbers of each process.

        Args:
            rows: number of queries of each process, by process rank.
            queries: number of queries that the statistics of each process describe.
            numbers: of each process; the numbers of this direction come first.
        """
        parts = [_Numbers(x) for x in numbers]
        if self.drawn_from is not None:
            values = self._estimates(rows, sum(queries), parts)
        else:
            values = self._statistics(rows, parts)
        return values, [part.rest for part in parts]

    def _statistics(self, rows: Sequence[int], parts: Sequence[_Numbers]) -> list[float]:
        merged: dict[tuple[int, str], float] = {}
        for group in self._groups:
            reducer = REDUCERS[next(iter(group.reducers))]
            sizes = [reducer.part(torch.zeros(1, n, dtype=torch.float64), None).shape[1] for n in rows]
            of_all = [part.take(len(group.members), size) for part, size in zip(parts, sizes, strict=True)]
            total = reduce(reducer.merge, of_all)
            values = {name: REDUCERS[name].value(total).tolist() for name in group.reducers}
            for index, statistic, member in group.targets:
                merged[index, statistic.name] = values[statistic.reducer][member]
        with_rows = [part for part, n in zip(parts, rows, strict=True) if n]
        for result in self._of_no_queries:
            columns = result.probe.finish(_merge_accumulators(result.accumulators, with_rows))
            for index, statistic in self.plan.statistics:
                if self.results[index] is result:
                    merged[index, statistic.name] = float(reduce_column(statistic, columns, 1)[0])
        return [merged[index, statistic.name] for index, statistic in self.plan.statistics]

    def _estimates(self, rows: Sequence[int], population: int, parts: Sequence[_Numbers]) -> list[float]:
        blocks = [part.take(len(self._columns), n) for part, n in zip(parts, rows, strict=True)]
        columns = dict(zip(self._columns, torch.cat(blocks, 1), strict=True))
        values: list[float] = []
        for index, statistic in self.plan.statistics:
            if self.results[index].probe.axis != "query":
                values += [float(reduce_column(statistic, self.results[index].columns, 1)[0]), *NO_INTERVAL]
                continue
            column, skipped = columns[index, statistic.column], columns[index, "skipped"]
            if not len(column):
                values += [torch.nan, *NO_INTERVAL]
                continue
            value = reduce_column(statistic, {statistic.column: column, "skipped": skipped}, 1)
            usable = (skipped == 0).numpy()
            estimated, ends = estimate(statistic, value.numpy(), column.numpy(), usable, population)
            values += [float(estimated[0]), *ends]
        return [*values, float(sum(rows))]

    @cached_property
    def _groups(self) -> list[Group]:
        """Groups of columns of queries, for statistics that are single numbers."""
        groups = groups_of(self.results)
        return [group for group in groups if group.axis == "query" and "curve" not in group.reducers]

    @cached_property
    def _columns(self) -> list[tuple[int, str]]:
        """The columns of the statistics, and `skipped` of each result: (index of the result, name)."""
        keys: dict[tuple[int, str], None] = {}
        for index, statistic in self.plan.statistics:
            if self.results[index].probe.axis == "query":
                keys |= {(index, statistic.column): None, (index, "skipped"): None}
        return list(keys)

    @property
    def _of_no_queries(self) -> list[ProbeResult]:
        return [result for result in self.results if result.probe.axis != "query"]


@dataclass
class _Numbers:
    """Numbers of a process, read block by block."""

    rest: Tensor

    def take(self, *shape: int) -> Tensor:
        """Return the next numbers as a tensor of a shape."""
        size = torch.Size(shape).numel()
        taken, self.rest = self.rest[:size].view(shape), self.rest[size:]
        return taken


def _merge_accumulators(shapes: Accumulators, parts: Sequence[_Numbers]) -> Accumulators:
    """Return the merged accumulators of all processes with queries; `shapes` has their shapes and types."""
    merged = {}
    for name, accumulator in shapes.items():
        shape, dtype, merge = accumulator.value.shape, accumulator.value.dtype, accumulator.merge
        merged[name] = reduce(Accumulator.combine, (Accumulator(part.take(*shape).to(dtype), merge) for part in parts))
    return merged


def require_shares(objective: Objective, probes: Sequence[Probe]) -> None:
    """Raise InputError for an objective and probes whose numbers do not follow from parts of the queries."""
    for probe in probes:
        if probe.axis != "query" and "embeddings" in probe.reads and getattr(probe, "needs_all_queries", True):
            raise InputError(
                f"{short_spec(probe)} needs the embeddings of all queries of a batch; a process has only its own. "
                "Leave it out, or watch whole batches"
            )
        if probe.needs_objective and needs_whole_matrix(objective, probe):
            raise InputError(
                f"the numbers of a query depend on other queries under {name_of_objective(objective)} with "
                f"{short_spec(probe)}, so rows of one process are not enough. Leave it out, or watch whole batches"
            )
