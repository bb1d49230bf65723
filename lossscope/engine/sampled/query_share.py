"""The sampled queries of a batch that one process has, and what those of all processes say of all queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lossscope.probes.base import reduce_column

from ..direction_plan import DirectionPlan
from ..run_probes import ProbeResult
from .estimates import estimate
from .intervals import NO_INTERVAL

_Key = tuple[int, str]  # index of a result, and the name of its column


@dataclass(frozen=True)
class SampledShare:
    """The numbers of some queries of one direction, drawn at random, each against all candidates.

    Of a statistic of something else than queries there is what these queries alone say, without an interval.
    """

    plan: DirectionPlan
    columns: Sequence[Mapping[str, Tensor]]  # of each result; of queries (rows,) each, with `skipped`
    rows: int  # queries that were drawn
    queries: int  # that they were drawn from

    @classmethod
    def of(cls, plan: DirectionPlan, parts: Sequence[Sequence[ProbeResult]], rows: int, queries: int) -> SampledShare:
        """Return the numbers of queries whose results were computed some at a time.

        Args:
            plan: of the direction.
            parts: results of each part of the queries.
            rows: that were drawn, in all parts; 0: the results are of a row in their place.
            queries: that they were drawn from.
        """
        every = [[result.columns() for result in part] for part in parts]
        columns = []
        for results in zip(*every, strict=True):
            names = [name for name, x in results[0].items() if x.ndim == 1]
            columns.append({name: torch.cat([result[name] for result in results]) for name in names})
        return cls(plan, columns, rows, queries)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each number of `merge`: `q2d/C_neg`, `q2d/C_neg_low`, `q2d/C_neg_high`, ..., `q2d/rows`."""
        ends = (f"{name}{end}" for name in self.plan.columns for end in ("", "_low", "_high"))
        return (*ends, f"{self.plan.sides.label(self.plan.direction)}/rows")

    def numbers(self) -> Tensor:
        """(k,) float64: the columns of these queries, and which of them are skipped."""
        columns = [self.columns[result][name][: self.rows].double() for result, name in self._keys]
        return torch.cat(columns) if columns else torch.zeros(0, dtype=torch.float64)

    def merge(
        self, rows: Sequence[int], queries: Sequence[int], numbers: Sequence[Tensor]
    ) -> tuple[list[float], list[Tensor]]:
        """Return the numbers of `names`, and what is left of the numbers of each process.

        Args:
            rows: number of sampled queries of each process, by rank.
            queries: number of queries that they were drawn from.
            numbers: of each process, those of this direction first.
        """
        m, population = len(self._keys), sum(queries)
        blocks = [x[: n * m].view(m, n) for x, n in zip(numbers, rows, strict=True)]
        rest = [x[n * m :] for x, n in zip(numbers, rows, strict=True)]
        every = dict(zip(self._keys, torch.cat(blocks, 1), strict=True))
        values: list[float] = []
        for place, _, probe, statistic in self.plan.statistics:
            if probe.axis != "query":
                values += [float(reduce_column(statistic, self.columns[place], 1)[0]), *NO_INTERVAL]
                continue
            column, skipped = every[place, statistic.column], every[place, "skipped"]
            if not len(column):
                values += [torch.nan, *NO_INTERVAL]
                continue
            value = reduce_column(statistic, {statistic.column: column, "skipped": skipped}, 1)
            usable = (skipped == 0).numpy()
            estimated, ends = estimate(statistic, value.numpy(), column.numpy(), usable, population)
            values += [float(estimated[0]), *ends]
        return [*values, float(sum(rows))], rest

    @cached_property
    def _keys(self) -> list[_Key]:
        """The columns of queries that statistics are reduced from, and `skipped` of each result."""
        keys: dict[_Key, None] = {}
        for place, _, probe, statistic in self.plan.statistics:
            if probe.axis == "query":
                keys |= {(place, statistic.column): None, (place, "skipped"): None}
        return list(keys)
