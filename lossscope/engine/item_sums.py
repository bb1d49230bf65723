"""Collect the numbers that intervals need from batches: those of all queries, and the effects of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.intervals import ItemSums
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.types import CountedDirection, Rows
from lossscope.objectives.base import Objective
from lossscope.probes.base import Accumulators, Probe
from lossscope.probes.views.view import BatchShape, DenseRows

from .result_group import Panels, ResultGroup, SampledRows
from .run_probes import ProbePlan, ProbeResult

Key = tuple[Probe, Objective | None, CountedDirection]  # probe, objective, direction
Sums = dict[tuple[Key, str], ItemSums]  # of every statistic
_MASK, _GOLDEN = (1 << 62) - 1, np.uint64(0x9E3779B97F4A7C15)
_QUERIES, _FEWEST = 2048, 32  # queries in the sample: for batches of 32, and at least for any batch
_ENTRIES = 1 << 19  # entries of S of the sampled queries, at most, unless there are the fewest queries


@dataclass(frozen=True)
class QuerySample:
    """A share of all queries, chosen by seed, batch and row: intervals compute the effects of their candidates.

    Effects of all queries would cost as much as the sweep. The sums are divided by the share, and `ItemSums.overlap`
    has the variance that this adds. So intervals are right on average with any share; with this one their width is
    uncertain by a few per cent.
    """

    share: float
    seed: int

    @classmethod
    def of(cls, units: int, queries: int, candidates: int, seed: int) -> QuerySample:
        """Return the sample of a sweep over `queries` queries of one direction, with `candidates` of a batch."""
        shrink = math.sqrt(min(32 / max(candidates, 1), 1.0))
        enough = max(min(_QUERIES * shrink, _ENTRIES / max(candidates, 1)), _FEWEST) / max(queries, 1)
        return cls(min(max(enough, 2 * shrink / math.sqrt(max(units, 1))), 1.0), seed)

    def draw(self, first: int, batches: int, queries: int, forward: bool) -> Rows:
        """Return the indices of the sampled queries among the queries of consecutive batches, in one direction.

        Args:
            first: number of the first batch.
            batches: number of batches.
            queries: queries of each batch.
            forward: whether this is the first direction.
        """
        n = batches * queries
        if self.share >= 1:
            return np.arange(n, dtype=np.int64)
        batch = np.repeat(np.arange(first, first + batches, dtype=np.uint64), queries)
        row = np.tile(np.arange(queries, dtype=np.uint64), batches)
        words = _mix(np.uint64(2 * (self.seed & _MASK) + int(forward)), batch << np.uint64(32) | row)
        return np.flatnonzero(words < np.uint64(int(self.share * 2.0**64))).astype(np.int64)


@dataclass(frozen=True)
class StackNumbers:
    """The numbers for intervals of a stack of batches in one direction: plain tensors, which processes exchange."""

    number: int  # of the stack, in the order of the sweep
    items: int  # of each batch
    results: tuple[tuple[int, BatchShape, Accumulators, Tensor], ...]  # index in the plan, then as in ProbeResult
    sampled: SampledRows | None = None  # rows of the queries that QuerySample chose
    panels: Panels | None = None  # of a large batch, instead of `sampled`: yields the rows; never sent to a process


@dataclass
class IntervalCollector:
    """Collect the numbers and sampled rows of stacks, and add them up over units."""

    plan: ProbePlan
    units: SamplingUnits
    sample: QuerySample
    query_units: Callable[[BatchShape], tuple[Rows, Rows]]  # units of queries and of candidates, in the shape of ids
    complete: Callable[[DenseRows], DenseRows]  # adds embeddings and keys to sampled rows
    full_items: int  # items of a full batch; totals are averaged over full batches
    stacks: list[StackNumbers] = field(default_factory=list)
    large: list[StackNumbers] = field(default_factory=list)  # batches that all processes computed together

    def numbers_of(
        self, number: int, start: int, items: int, results: Sequence[ProbeResult], rows: DenseRows
    ) -> StackNumbers:
        """Return the numbers of a stack of batches in one direction.

        Args:
            number: of the stack.
            start: number of its first batch.
            items: of each batch.
            results: of its probes.
            rows: of S.
        """
        shape = rows.shape
        forward = shape.direction == "i2t"
        query_index = torch.from_numpy(self.sample.draw(start, shape.batches, shape.queries, forward))
        sampled = (
            (rows.only_similarities().take(query_index.to(rows.S.device)), query_index) if len(query_index) else None
        )
        return StackNumbers(number, items, self._plain(results), sampled)

    def add_large(self, number: int, items: int, results: Sequence[ProbeResult], panels: Panels) -> None:
        """Collect the numbers of a large batch in one direction.

        Args:
            number: of the stack that the batch is.
            items: of the batch.
            results: of the whole batch.
            panels: yields sampled rows and their indices (r,) among all queries, when the effects are computed.
        """
        self.large.append(StackNumbers(number, items, self._plain(results), panels=panels))

    def _plain(self, results: Sequence[ProbeResult]) -> tuple[tuple[int, BatchShape, Accumulators, Tensor], ...]:
        return tuple(
            (self.plan.pairs.index((result.objective, result.probe)), result.shape, result.accumulators, result.skipped)
            for result in results
            if _has_intervals(result)
        )

    def groups(self, stacks: Iterable[StackNumbers]) -> dict[Key, ResultGroup]:
        """Return the results of all stacks and large batches by probe, objective and direction."""
        groups: dict[Key, ResultGroup] = {}
        for stack in sorted([*stacks, *self.large], key=lambda stack: stack.number):
            for index, shape, accumulators, skipped in stack.results:
                objective, probe = self.plan.pairs[index]
                result = ProbeResult(probe, objective, shape, accumulators, skipped)
                group = groups.setdefault(
                    (probe, objective, result.direction), ResultGroup(self.query_units, self.complete)
                )
                group.results.append(result)
                group.full.append(stack.items == self.full_items)
                if stack.sampled is not None:
                    rows, query_index = stack.sampled
                    group.rows.append((rows, query_index + group.queries))
                if stack.panels is not None:
                    group.panels.append((stack.panels, group.queries))
                group.queries += len(shape.query_ids)
        return groups

    def sums(self, stacks: Iterable[StackNumbers]) -> Sums:
        """Return the sums of every statistic that is a smooth function of means, over all stacks and large batches."""
        sums: Sums = {}
        for key, group in self.groups(stacks).items():
            sums.update({(key, name): of_name for name, of_name in self._sums_of(group).items()})
        return sums

    def _sums_of(self, group: ResultGroup) -> dict[str, ItemSums]:
        """Return the sums of each statistic of a group; NaN if its candidates have no known effects."""
        number, share = self.units.number, self.sample.share
        by_unit = {name: np.zeros(number) for name in group.linear}
        overlaps = dict.fromkeys(group.linear, 0.0)
        for effects in group.row_effects():
            if effects is None:  # then a sum over parts is NaN, even if other parts have effects
                overlaps = dict.fromkeys(overlaps, math.nan)
                break
            for name, of_rows in effects.of_statistics.items():
                by_unit[name] += effects.by_unit(of_rows, number, share)
                overlaps[name] += effects.overlap(of_rows, share)
        of_all = group.by_unit(None, number)
        return {
            name: ItemSums(
                of_all if statistic.weights is None else group.by_unit(statistic.weights, number),
                group.by_unit(
                    statistic.values if statistic.weights is None else statistic.values * statistic.weights, number
                ),
                by_unit[name], overlaps[name], *statistic.squares(),
            )
            for name, (statistic, _) in group.linear.items()
        }  # fmt: skip


def _has_intervals(result: ProbeResult) -> bool:
    """Return whether a result has a number for each query; published counters mix rows, and have none."""
    return result.probe.axis == "query" and getattr(result.probe, "convention", "corrected") == "corrected"


def _mix(seed: np.uint64, x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a random word of 64 bits for each number: SplitMix64, started at the word of the seed."""
    start = _finalise(np.full(1, seed, np.uint64) + _GOLDEN)
    return _finalise(x * _GOLDEN + start)


def _finalise(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
