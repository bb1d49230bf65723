"""The probes of one direction of a batch: their columns, their statistics in order, and the names of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lossscope.core.sides import Sides
from lossscope.core.types import Direction
from lossscope.objectives.base import Objective
from lossscope.probes.base import Axis, Probe, Reducer, Statistic, reduce_column
from lossscope.probes.views.view import RowsOfS
from lossscope.registry import short_spec

from .run_probes import ProbePlan, ProbeResult, label_of, run_probes

Columns = Sequence[Mapping[str, Tensor]]  # the columns of each result


@dataclass(frozen=True)
class DirectionPlan:
    """The probes that are run on one direction of a batch, and the order of their statistics."""

    plan: ProbePlan
    direction: Direction
    sides: Sides

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of each statistic."""
        triples = [(objective, short_spec(probe), one.name) for _, objective, probe, one in self.statistics]
        number = Counter(name for _, _, name in triples)
        label = self.sides.label
        return tuple(
            f"{label(label_of(objective, self.direction))}/{name if number[name] == 1 else f'{probe}/{name}'}"
            for objective, probe, name in triples
        )

    def run(self, rows: RowsOfS) -> list[ProbeResult]:
        """Return the result of each probe."""
        return list(run_probes(rows, self.plan))

    def reduce(self, directions: Sequence[Columns]) -> Tensor:
        """(directions, statistics); all directions have this plan and the same number of elements."""
        if not self.statistics:
            return torch.zeros(len(directions), 0, dtype=torch.float64)
        reduced = []
        for (reducer, axis), members in self.groups.items():
            columns = {
                "all": torch.cat(
                    [stack_columns([results[result][name] for _, result, name in members]) for results in directions]
                )
            }
            if axis == "query":
                columns["skipped"] = torch.cat([results[members[0][1]]["skipped"] for results in directions])
            reduced.append(reduce_column(Statistic("all", "all", reducer, ""), columns, len(directions)))
        return torch.cat(reduced, 1)[:, self._order]

    @cached_property
    def statistics(self) -> list[tuple[int, Objective | None, Probe, Statistic]]:
        """Every statistic that is one number, with the index of its probe in the plan."""
        return [
            (index, objective, probe, statistic)
            for index, (objective, probe) in enumerate(self.plan)
            for statistic in probe.statistics(objective)
            if statistic.reducer != "curve"
        ]

    @cached_property
    def groups(self) -> dict[tuple[Reducer, Axis], list[tuple[int, int, str]]]:
        """Statistics that are reduced in one call: (index in `statistics`, index in the plan, column) of each."""
        groups: dict[tuple[Reducer, Axis], list[tuple[int, int, str]]] = {}
        for index, (result, _, probe, statistic) in enumerate(self.statistics):
            member = (index, result, statistic.column)
            groups.setdefault((statistic.reducer, probe.axis), []).append(member)
        return groups

    @cached_property
    def _order(self) -> list[int]:
        """Index in the order of `groups` of each of `statistics`."""
        grouped = [index for members in self.groups.values() for index, _, _ in members]
        return sorted(range(len(grouped)), key=grouped.__getitem__)


def stack_columns(columns: Sequence[Tensor]) -> Tensor:
    """(elements, columns), in float64 if their types differ, so that no digits are lost."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [column.double() for column in columns]
    return torch.stack(list(columns), -1)
