"""Columns of probes -> the statistics of their batches, all that are reduced alike in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.probes.base import Axis, ReducerName, Statistic

from .reducers import REDUCERS, part_of
from .run_probes import ProbeResult

Values = npt.NDArray[np.float64]
_Key = tuple[Callable[..., Tensor], bool, Axis, tuple[int, ...]]


@dataclass(frozen=True)
class Reduced:
    """Where the statistics of a result are among those of all results, in `statistics_of`."""

    places: dict[str, tuple[int, int, tuple[int, ...]]]  # statistic -> first number, batches, shape of a batch's

    def take(self, numbers: Values) -> dict[str, Values]:
        """Return statistic -> (k,) numbers of its batches, or (k, n) of a curve."""
        return {
            name: numbers[start : start + k * prod(rest)].reshape(k, *rest)
            for name, (start, k, rest) in self.places.items()
        }


@dataclass
class Group:
    """Columns whose elements are added up alike: rows of one tensor."""

    axis: Axis
    members: list[tuple[int, str]] = field(default_factory=list)  # (index of a result, column), each once
    # (index of a result, statistic, its reducer, index of its column in `members`)
    targets: list[tuple[int, Statistic, int]] = field(default_factory=list)

    @property
    def reducers(self) -> dict[ReducerName, None]:
        """Names of the reducers, which have one `part` and one `merge`."""
        return dict.fromkeys(statistic.reducer for _, statistic, _ in self.targets)

    def part(self, results: Sequence[ProbeResult], elements: int | None = None, has_skipped: bool = True) -> Tensor:
        """Return what the elements of each column add, (k of the first column, k of the next, ..., m, ...).

        Args:
            results: of probes.
            elements: number of elements of a batch that count, from the first; None: all.
            has_skipped: whether any query is skipped.
        """
        values, skipped = [], []
        for index, name in self.members:
            result = results[index]
            k = result.shape.batches
            column = result.columns[name]
            values.append(column.reshape(k, -1, *column.shape[1:])[:, :elements])
            if has_skipped and self.axis == "query":
                skipped.append(result.skipped.reshape(k, -1)[:, :elements])
        if any(column.dtype != values[0].dtype for column in values):
            values = [column.double() for column in values]
        reducer = REDUCERS[next(iter(self.reducers))]
        return part_of(reducer, torch.cat(values), torch.cat(skipped) if skipped else None)


def groups_of(results: Sequence[ProbeResult]) -> list[Group]:
    """Return the columns of all results that statistics are of, those together that are added up alike."""
    groups: dict[_Key, Group] = {}
    places: dict[tuple[_Key, int, str], int] = {}
    for index, result in enumerate(results):
        columns, axis, k = result.columns, result.probe.axis, result.shape.batches
        for statistic in result.statistics():
            size, *rest = columns[statistic.column].shape
            reducer = REDUCERS[statistic.reducer]
            key: _Key = (reducer.part, reducer.counts_skipped, axis, (size // k, *rest))
            group, member = groups.setdefault(key, Group(axis)), (key, index, statistic.column)
            if member not in places:
                places[member] = len(group.members)
                group.members.append((index, statistic.column))
            group.targets.append((index, statistic, places[member]))
    return list(groups.values())


def statistics_of(results: Sequence[ProbeResult], has_skipped: bool = True) -> tuple[Tensor, list[Reduced]]:
    """Return the statistics of all results in one tensor, float64 on their device, and where those of each are.

    Args:
        results: of probes on one device.
        has_skipped: whether any query is skipped; where that is not known it is looked at.
    """
    reduced: list[Reduced] = [Reduced({}) for _ in results]
    flat: list[Tensor] = []
    end = 0
    for group in groups_of(results):
        part = group.part(results, has_skipped=has_skipped)
        sizes = [results[index].shape.batches for index, _ in group.members]
        starts = [0, *accumulate(sizes)]
        for name in group.reducers:
            values = REDUCERS[name].value(part)
            rest = tuple(values.shape[1:])
            width = prod(rest)
            for index, statistic, member in group.targets:
                if statistic.reducer == name:
                    reduced[index].places[statistic.name] = (end + starts[member] * width, sizes[member], rest)
            flat.append(values.flatten())
            end += values.numel()
    return torch.cat(flat) if flat else torch.zeros(0, dtype=torch.float64), reduced


def batch_statistics(results: Sequence[ProbeResult]) -> list[dict[str, Values]]:
    """Return the statistics of each result: name -> (k,) numbers of its batches, or (k, n) of a curve."""
    flags = {id(result.skipped): result.skipped for result in results}
    numbers, reduced = statistics_of(results, any(bool(skipped.any()) for skipped in flags.values()))
    flat = numbers.cpu().numpy()
    return [
        {statistic.name: values[statistic.name] for statistic in result.statistics()}
        for result, values in zip(results, (places.take(flat) for places in reduced), strict=True)
    ]
