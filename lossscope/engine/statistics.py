"""Reduce columns of probes to statistics of batches; columns with the same reduction take one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.objectives.counting.block import Buffers
from lossscope.probes.base import Axis, ReducerName, Statistic

from .reducers import REDUCERS, part_of
from .run_probes import ProbeResult

Values = npt.NDArray[np.float64]
_Key = tuple[Callable[..., Tensor], bool, Axis, tuple[int, ...]]


@dataclass
class Group:
    """Columns with the same reduction: rows of one tensor."""

    axis: Axis
    members: list[tuple[int, str]] = field(default_factory=list)  # (index of a result, column), each once
    # (index of a result, statistic, its reducer, index of its column in `members`)
    targets: list[tuple[int, Statistic, int]] = field(default_factory=list)

    @cached_property
    def reducers(self) -> tuple[ReducerName, ...]:
        """Names of the reducers, which share `part` and `merge`; read this only when all targets are known."""
        return tuple(dict.fromkeys(statistic.reducer for _, statistic, _ in self.targets))

    def part(
        self,
        results: Sequence[ProbeResult],
        elements: int | None = None,
        has_skipped: bool = True,
        buffers: Buffers | None = None,
    ) -> Tensor:
        """Return the part that the elements of each column add, (k of the first column, k of the next, ..., m, ...).

        Args:
            results: of probes.
            elements: number of elements of a batch that count, from the first; None: all.
            has_skipped: whether a query may be skipped.
            buffers: memory that the next columns overwrite.
        """
        columns = [results[index].columns[name] for index, name in self.members]
        k, total = (
            sum(results[index].shape.batches for index, _ in self.members),
            sum(column.shape[0] for column in columns),
        )
        rest, memory = columns[0].shape[1:], buffers or Buffers()
        values = torch.cat(columns, out=memory.get("columns", (total, *rest), torch.float64, columns[0].device))
        skipped = None
        if has_skipped and self.axis == "query":
            skipped = torch.cat([results[index].skipped for index, _ in self.members]).view(k, -1)[:, :elements]
        reducer = REDUCERS[self.reducers[0]]
        return part_of(reducer, values.view(k, total // k, *rest)[:, :elements], skipped)


def groups_of(results: Sequence[ProbeResult]) -> list[Group]:
    """Return the columns that the statistics of all results need, grouped by reduction."""
    groups: dict[_Key, Group] = {}
    index_of: dict[tuple[_Key, int, str], int] = {}
    for index, result in enumerate(results):
        columns, axis, k = result.columns, result.probe.axis, result.shape.batches
        for statistic in result.statistics():
            size, *rest = columns[statistic.column].shape
            reducer = REDUCERS[statistic.reducer]
            key: _Key = (reducer.part, reducer.counts_skipped, axis, (size // k, *rest))
            group, member = groups.setdefault(key, Group(axis)), (key, index, statistic.column)
            if member not in index_of:
                index_of[member] = len(group.members)
                group.members.append((index, statistic.column))
            group.targets.append((index, statistic, index_of[member]))
    return list(groups.values())


@dataclass(frozen=True)
class Layout:
    """Which columns of results are reduced together, and where the statistics of each result stand among all."""

    groups: list[Group]
    # of each result: (statistic, index of its first number, batches, shape of a batch's value)
    entries: list[list[tuple[Statistic, int, int, tuple[int, ...]]]]

    @classmethod
    def of(cls, results: Sequence[ProbeResult]) -> Layout:
        """Return the layout of results; it fits all results of the same probes, objectives and shapes."""
        groups, found, end = groups_of(results), dict[tuple[int, str], tuple[int, int, tuple[int, ...]]](), 0
        for group in groups:
            sizes = [results[index].shape.batches for index, _ in group.members]
            starts = [0, *accumulate(sizes)]
            column = results[group.members[0][0]].columns[group.members[0][1]]
            rest = tuple(column.shape[1:])
            for name in group.reducers:
                for index, statistic, member in group.targets:
                    if statistic.reducer == name:
                        found[index, statistic.name] = end + starts[member] * prod(rest), sizes[member], rest
                end += starts[-1] * prod(rest)
        entries = [
            [(statistic, *found[index, statistic.name]) for statistic in result.statistics()]
            for index, result in enumerate(results)
        ]
        return cls(groups, entries)

    def numbers(
        self, results: Sequence[ProbeResult], has_skipped: bool = True, buffers: Buffers | None = None
    ) -> Tensor:
        """Return the statistics of all results in one tensor, float64 on their device.

        Args:
            results: of probes on one device.
            has_skipped: whether a query may be skipped; True is always right, and slower.
            buffers: memory that the next columns overwrite.
        """
        flat: list[Tensor] = []
        for group in self.groups:
            part = group.part(results, has_skipped=has_skipped, buffers=buffers)
            flat += [REDUCERS[name].value(part).flatten() for name in group.reducers]
        return torch.cat(flat) if flat else torch.zeros(0, dtype=torch.float64)


class Layouts:
    """The layouts of the results of a plan, each computed once: stacks of the same shape share a layout."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[tuple[int, ...], ...], tuple[Layout, list[Any]]] = {}

    def of(self, results: Sequence[ProbeResult]) -> Layout:
        """Return the layout of results; their probes and objectives must be objects of the plan."""
        if any(hasattr(result.probe, "layers") for result in results):  # only columns name the layers
            return Layout.of(results)
        key = tuple(
            (
                id(result.probe),
                id(result.objective),
                result.shape.batches,
                len(result.shape.query_ids),
                result.shape.candidates,
            )
            for result in results
        )
        if key not in self._layouts:
            objects = [thing for result in results for thing in (result.probe, result.objective)]  # keeps ids unique
            self._layouts[key] = Layout.of(results), objects
        return self._layouts[key][0]


def batch_statistics(
    results: Sequence[ProbeResult], layouts: Layouts | None = None, buffers: Buffers | None = None
) -> list[dict[str, Values]]:
    """Return the statistics of each result: name -> (k,) numbers of its batches, or (k, n) for a curve.

    Args:
        results: of probes.
        layouts: of earlier results of the same plan.
        buffers: memory that the next columns overwrite.
    """
    flags = {id(result.skipped): result.skipped for result in results}
    has_skipped = any(bool(skipped.any()) for skipped in flags.values())
    layout = (layouts or Layouts()).of(results)
    flat = layout.numbers(results, has_skipped, buffers).cpu().numpy()
    return [
        {
            statistic.name: flat[start : start + k * prod(rest)].reshape(k, *rest) if rest else flat[start : start + k]
            for statistic, start, k, rest in entries
        }
        for entries in layout.entries
    ]
