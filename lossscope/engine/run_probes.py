"""Run probes on rows of S: each probe once for every objective, or once for all if it needs none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.types import CountedDirection, Direction
from lossscope.objectives.base import Objective
from lossscope.probes.base import Accumulators, Axis, Probe, Reducer, Statistic, concatenate, reduce_column
from lossscope.probes.views.view import BatchShape, RowsOfS, View

ProbePlan = Sequence[tuple[Objective | None, Probe]]  # objective None: the probe needs none
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProbeResult:
    """What a probe computed from rows of S."""

    probe: Probe
    objective: Objective | None  # None: the probe needs none
    shape: BatchShape
    accumulators: Accumulators
    skipped: Tensor  # (k·q,) bool, queries without a positive or without a negative

    @property
    def direction(self) -> CountedDirection:
        """The direction of the rows; `both` where the objective has one gradient for the two."""
        return label_of(self.objective, self.shape.direction)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the statistics of each batch."""
        statistics = self.probe.statistics(self.objective)
        layers = getattr(self.probe, "layers", None)  # a probe of layers knows their names from its columns only
        return statistics if layers is None else (*statistics, *layers(self.columns()))

    def columns(self) -> dict[str, Tensor]:
        """Return column -> number per element of the probe's axis; with `skipped` if the elements are queries."""
        columns = self.probe.finish(self.accumulators)
        return {**columns, "skipped": self.skipped} if self.probe.axis == "query" else columns


def plan_probes(objectives: Sequence[Objective], probes: Sequence[Probe]) -> ProbePlan:
    """Return which probe is run on which objective, those that need no objective first."""
    without: list[tuple[Objective | None, Probe]] = [(None, probe) for probe in probes if not probe.needs_objective]
    return [*without, *((objective, probe) for objective in objectives for probe in probes if probe.needs_objective)]


def plan_of_direction(plan: ProbePlan, direction: Direction) -> ProbePlan:
    """Return the part of a plan that is run on a direction: objectives that have a gradient of it.

    One gradient for both directions is run on i2t, where the rows of W are images.
    """
    return [
        (objective, probe)
        for objective, probe in plan
        if objective is None or label_of(objective, direction) in objective.counted_directions
    ]


def label_of(objective: Objective | None, direction: Direction) -> CountedDirection:
    """Return what numbers of rows of a direction are of: `both`, where the objective has one gradient for the two."""
    has_both = objective is not None and "both" in objective.counted_directions
    return "both" if has_both and direction == "i2t" else direction


def run_probes(rows: RowsOfS, plan: ProbePlan) -> Iterator[ProbeResult]:
    """Yield the result of every probe of the plan on rows of S."""
    views: dict[Objective | None, View] = {}
    for objective, probe in plan:
        if objective not in views:
            views[objective] = View(rows, objective)
        yield ProbeResult(probe, objective, rows.shape, probe.tile(views[objective]), rows.skipped)


def batch_statistics(results: Sequence[ProbeResult]) -> list[dict[str, Values]]:
    """Return the statistics of each result: name -> (k,) numbers of its batches, or (k, n) of a curve.

    Columns of all results that have the same reducer are reduced in one call, and a column that several statistics
    share is reduced once.
    """
    groups: dict[tuple[Reducer, Axis, tuple[int, ...]], dict[int, _Column]] = {}
    statistics = [result.statistics() for result in results]
    for index, result in enumerate(results):
        columns, axis, k = result.columns(), result.probe.axis, result.shape.batches
        for statistic in statistics[index]:
            column = columns[statistic.column]
            size, *rest = column.shape
            group = groups.setdefault((statistic.reducer, axis, (size // k, *rest)), {})
            if id(column) not in group:
                group[id(column)] = _Column(column, result)
            group[id(column)].targets.append((index, statistic.name))
    any_skipped = any(
        bool(skipped.any()) for skipped in {id(result.skipped): result.skipped for result in results}.values()
    )
    reduced: list[dict[str, Values]] = [{} for _ in results]
    for (reducer, axis, _), group in groups.items():
        members = list(group.values())
        combined = {"all": torch.cat([member.values for member in members])}
        if any_skipped and axis == "query":
            combined["skipped"] = torch.cat([member.result.skipped for member in members])
        batches = [member.result.shape.batches for member in members]
        values = reduce_column(Statistic("all", "all", reducer, ""), combined, sum(batches)).cpu().numpy()
        for member, number, end in zip(members, batches, accumulate(batches), strict=True):
            for index, name in member.targets:
                reduced[index][name] = values[end - number : end]
    return [
        {statistic.name: values[statistic.name] for statistic in names}
        for names, values in zip(statistics, reduced, strict=True)
    ]


@dataclass(frozen=True)
class _Column:
    """A column of a result, and the statistics that are reduced from it."""

    values: Tensor
    result: ProbeResult
    targets: list[tuple[int, str]] = field(default_factory=list)  # (index of a result, name of a statistic)


def merge_parts(parts: Sequence[ProbeResult], shape: BatchShape) -> ProbeResult:
    """Merge the results of consecutive queries of one batch; `shape` is that of the whole."""
    first = parts[0]
    accumulators = concatenate(first.probe.axis, [part.accumulators for part in parts])
    return ProbeResult(first.probe, first.objective, shape, accumulators, torch.cat([part.skipped for part in parts]))


def append_part(parts: list[ProbeResult], part: ProbeResult) -> list[ProbeResult]:
    """Append a part of a batch; unless its elements are queries it is merged at once, which takes less memory."""
    if part.probe.axis == "query" or not parts:
        return [*parts, part]
    return [merge_parts([*parts, part], part.shape)]
