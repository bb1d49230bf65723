"""Probes on looks: every probe on every objective it weighs, once on what does not depend on one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.objectives.base import Objective
from lossscope.probes.base import Accumulators, Axis, Probe, Reducer, Statistic, concatenate, reduce_column
from lossscope.probes.views.view import BatchShape, RowsOfS, View

ProbePlan = Sequence[tuple[Objective | None, Probe]]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProbeResult:
    """What a probe has found in one view; objective None: it weighs none. skipped: (k·q,) bool."""

    probe: Probe
    objective: Objective | None
    shape: BatchShape
    accumulators: Accumulators
    skipped: Tensor

    def statistics(self) -> tuple[Statistic, ...]:
        """What is reported per batch."""
        found = self.probe.statistics(self.objective)
        layers = getattr(self.probe, "layers", None)  # only the model tells which there are
        return found if layers is None else (*found, *layers(self.columns()))

    def columns(self) -> dict[str, Tensor]:
        """Column -> number per element; queries also say which of them were skipped."""
        columns = self.probe.finish(self.accumulators)
        return {**columns, "skipped": self.skipped} if self.probe.axis == "query" else columns


def plan_probes(objectives: Sequence[Objective], probes: Sequence[Probe]) -> ProbePlan:
    """Which probe looks at which objective: first those that look at none."""
    free: list[tuple[Objective | None, Probe]] = [(None, probe) for probe in probes if not probe.needs_objective]
    return [*free, *((objective, probe) for objective in objectives for probe in probes if probe.needs_objective)]


def run_probes(look: RowsOfS, questions: ProbePlan) -> Iterator[ProbeResult]:
    """Every question about a look."""
    views: dict[Objective | None, View] = {}
    for objective, probe in questions:
        if objective not in views:
            views[objective] = View(look, objective)
        yield ProbeResult(probe, objective, look.shape, probe.tile(views[objective]), look.skipped)


def batch_statistics(found: Sequence[ProbeResult]) -> list[dict[str, Values]]:
    """Every statistic of each of the answers, (k,) numbers or (k, n) of a curve.

    Columns of all looks that are reduced alike are reduced together, and those that several probes tell of, once.
    """
    groups: dict[tuple[Reducer, Axis, tuple[int, ...]], dict[int, _Column]] = {}
    statistics = [one.statistics() for one in found]
    for place, one in enumerate(found):
        columns, axis, k = one.columns(), one.probe.axis, one.shape.batches
        for statistic in statistics[place]:
            column = columns[statistic.column]
            size, *rest = column.shape
            group = groups.setdefault((statistic.reducer, axis, (size // k, *rest)), {})
            if id(column) not in group:
                group[id(column)] = _Column(column, one)
            group[id(column)].names.append((place, statistic.name))
    skipping = any(bool(skipped.any()) for skipped in {id(one.skipped): one.skipped for one in found}.values())
    answers: list[dict[str, Values]] = [{} for _ in found]
    for (reducer, axis, _), group in groups.items():
        members = list(group.values())
        many = {"all": torch.cat([member.values for member in members])}
        if skipping and axis == "query":
            many["skipped"] = torch.cat([member.of.skipped for member in members])
        batches = [member.of.shape.batches for member in members]
        values = reduce_column(Statistic("all", "all", reducer, ""), many, sum(batches)).cpu().numpy()
        for member, number, end in zip(members, batches, accumulate(batches), strict=True):
            for place, name in member.names:
                answers[place][name] = values[end - number : end]
    return [{one.name: own[one.name] for one in names} for names, own in zip(statistics, answers, strict=True)]


@dataclass(frozen=True)
class _Column:
    """A column of an answer, and the (answer, statistic) that it is reduced for."""

    values: Tensor
    of: ProbeResult
    names: list[tuple[int, str]] = field(default_factory=list)


def merge_parts(parts: Sequence[ProbeResult], shape: BatchShape) -> ProbeResult:
    """Queries of one batch from the parts that they were cut in, in their order; `shape` is that of the whole."""
    first = parts[0]
    found = concatenate(first.probe.axis, [part.accumulators for part in parts])
    return ProbeResult(first.probe, first.objective, shape, found, torch.cat([part.skipped for part in parts]))


def fold_part(parts: list[ProbeResult], another: ProbeResult) -> list[ProbeResult]:
    """The parts met so far: those of single queries are kept, others become one at once, which takes less room."""
    if another.probe.axis == "query" or not parts:
        return [*parts, another]
    return [merge_parts([*parts, another], another.shape)]
