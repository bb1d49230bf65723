"""Run the probes on batches: a process takes a stack of small batches, all processes share the tiles of a large one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from lossscope.core import memory
from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.sides import ONE_SET
from lossscope.core.types import CountedDirection, Progress, Rows
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.block import Buffers
from lossscope.objectives.counting.units import resolve_unit
from lossscope.probes.base import Probe
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import short_spec, spec_of
from lossscope.spec import Spec

from . import small_batches
from .false_negatives import hide_by_rules
from .item_sums import IntervalCollector, QuerySample, StackNumbers
from .plan import Batching, SweepPlan
from .row_items import with_items, with_vectors
from .run_probes import ProbePlan, ProbeResult, needs_whole_matrix
from .statistics import Layouts, Values, batch_statistics
from .sweep_intervals import NamedSums, name_of
from .workers import ALONE, Workers


@dataclass(frozen=True)
class BatchRunner:
    """Run the probes of a sweep on its batches; the fields are the same for all batches."""

    plan: SweepPlan
    batching: Batching
    embedded: SplitEmbeddings
    processes: ProcessGroup  # processes that share the batches
    progress: Progress | None
    guide: SplitEmbeddings | None = None  # the same items under another model, for rules that compare with it
    units: SamplingUnits | None = None  # units of the split that intervals generalise over; None: no intervals
    workers: Workers = ALONE

    def run(self, batches: Sequence[Batch]) -> PartRows:
        """Return the numbers of the batches."""
        ((_, part),) = self.run_parts([("", 0, batches)], len(batches))
        return part

    def run_parts(
        self, parts: Iterable[tuple[str, int, Sequence[Batch]]], total: int
    ) -> Iterator[tuple[str, PartRows]]:
        """Yield the key and the numbers of each part when its last stack is done; threads then begin the next part.

        Args:
            parts: key, number of the first batch, and consecutive batches; one part is drawn ahead.
            total: number of batches of the sweep, for `progress`.
        """
        stacks = (stack for key, start, batches in parts for stack in self._stacks(key, batches, start))
        finished: list[_StackRows] = []
        for is_large, alike in groupby(stacks, lambda stack: stack.is_large):
            for stack, done in self._run_large(alike) if is_large else self.workers.run(self._run_own, alike):
                if done is not None:
                    finished.append(replace(done, numbers=[]))
                    if stack.part.collector is not None:
                        stack.part.collector.stacks += done.numbers
                if self.progress:
                    self.progress(f"{self.batching.sampling.mode} batches", stack.index + len(stack.batches), total)
                if stack.number + 1 == stack.part.stacks:
                    yield stack.part.key, self._part_rows(finished, stack.part.collector)
                    finished = []

    def _part_rows(self, finished: Sequence[_StackRows], collector: IntervalCollector | None) -> PartRows:
        """Return the rows of a part, gathered from the stacks of all processes."""
        of_all = [stack for of_process in self.processes.gather(finished) for stack in of_process]
        in_order = sorted(of_all, key=lambda stack: stack.number)
        queries = [rows for stack in in_order for rows in stack.queries]
        batches = rows_of_batches([rows for stack in in_order for rows in stack.rows])
        return PartRows(batches, pd.concat(queries) if queries else pd.DataFrame(), collector)

    def _stacks(self, key: str, batches: Sequence[Batch], start: int) -> Iterator[_Stack]:
        """Yield the stacks of a part; its first batch has the number `start`."""
        stacks = list(small_batches.stack_batches(batches, self._stack_entries()))
        index, part = start, _Part(key, len(stacks), self._collector(batches))
        for number, stack in enumerate(stacks):
            yield _Stack(part, number, index, stack, len(stack) == 1 and self._is_large(stack[0]))
            index += len(stack)

    def _run_own(self, stack: _Stack, buffers: Buffers) -> tuple[_Stack, _StackRows | None]:
        """Return a stack and its rows; None for the rows if another process computes the stack."""
        is_own = stack.number % self.processes.size == self.processes.rank
        return stack, self._run_stack(stack, buffers) if is_own else None

    def _run_stack(self, stack: _Stack, buffers: Buffers) -> _StackRows:
        """Return the rows of both directions of a stack; run batch by batch if the stack does not fit into memory."""
        try:
            return self._rows_of_stack(stack, buffers)
        except (MemoryError, RuntimeError) as error:
            if len(stack.batches) == 1 or not memory.is_out_of_memory(error):
                raise
        singles = [
            self._run_stack(replace(stack, index=stack.index + number, batches=[batch]), Buffers())
            for number, batch in enumerate(stack.batches)
        ]
        rows, queries, numbers = ([item for single in singles for item in getattr(single, name)] for name in _LISTS)
        return _StackRows(stack.number, rows, queries, numbers)

    def _run_large(self, stacks: Iterable[_Stack]) -> Iterator[tuple[_Stack, _StackRows | None]]:
        """Yield batches that all processes compute together; the first process has the rows."""
        for stack in stacks:
            results = self._results_of_large(stack)
            yield stack, self._stack_rows(stack, results, [], Buffers()) if self.processes.main else None

    def _collector(self, batches: Sequence[Batch]) -> IntervalCollector | None:
        """Return the collector of the sums of the batches; None without intervals."""
        if self.units is None or not batches:
            return None
        queries, candidates = self._queries_of_direction, max(len(batches[0].images), len(batches[0].captions))
        sample = QuerySample.of(self.units.number, queries, candidates, self.plan.options.seed)
        return IntervalCollector(self.probe_plan, self.units, sample, self._units_of, self._complete, self._full_items)

    @property
    def _queries_of_direction(self) -> int:
        """The approximate number of queries of one direction in the sweep."""
        return self.batching.sampling.count(self.embedded.relations) * len(self._first_batch.captions)

    @property
    def _full_items(self) -> int:
        """Items of a full batch, taken from the first batch: only the last may have fewer."""
        return len(self._first_batch.images)

    @cached_property
    def _first_batch(self) -> Batch:
        return next(self.batching.sampling.batches(self.embedded.relations))

    def _units_of(self, shape: BatchShape) -> tuple[Rows, Rows]:
        """Return the units of the queries (k·q,) and of the candidates (k, c)."""
        assert self.units is not None
        if self.batching.sampling.mode == "views":
            first = second = self.units.joined
        else:
            first, second = self.units.first, self.units.second
        if shape.direction == "t2i":
            first, second = second, first
        queries, candidates = shape.query_ids.numpy(), shape.candidate_ids.numpy()
        if not self.plan.options.terms:
            return first[queries], second[candidates]
        from .terms import units_of_items

        return first[queries], units_of_items(candidates, first, second)

    def _complete(self, rows: DenseRows) -> DenseRows:
        """Return rows of single queries with their embeddings, keys and ids of items."""
        joined = self.batching.sampling.mode == "views"
        embedded = self.embedded.joined if joined else self.embedded
        return with_items(embedded, with_vectors(embedded, rows), True)

    def sums(self, collector: IntervalCollector) -> NamedSums:
        """Return the sums of a part by the names of summary rows; every process gets the sums of the first."""
        stacks = [stack for of_process in self.processes.gather(collector.stacks) for stack in of_process]
        size = self.plan.batch_size_of(self.batching) or self._full_items
        named: NamedSums = {}
        if self.processes.main:
            for ((probe, objective, direction), statistic), sums in collector.sums(stacks).items():
                keys = {**self.key_of(probe, objective, direction), "batch_size": size}
                named[name_of(keys, self.plan.name_of(statistic))] = sums
        return self.processes.gather(named)[0]

    def require_rows(self, batch: Batch) -> None:
        """Raise InputError if the plan's further candidates or rules do not work on the rows of a batch."""
        keys = any(rule.needs in ("keys", "related") for rule in self.plan.masks)
        directions = self._rows(self.embedded, [batch], False, keys, Buffers(), False)
        if self.plan.masks:
            self._hide_negatives(directions, [batch])

    @cached_property
    def probe_plan(self) -> ProbePlan:
        """Which probe runs on which objective."""
        return ProbePlan.of(self.batching.objectives, self.plan.probes)

    @cached_property
    def _layouts(self) -> Layouts:
        return Layouts()

    @cached_property
    def _labels(self) -> dict[Probe, str]:
        """Name of each probe in the rows."""
        return {probe: _label(probe, self.plan.probes) for probe in self.plan.probes}

    @cached_property
    def _specs(self) -> dict[Objective | None, str | None]:
        return {None: None, **{objective: spec_of(objective) for objective in self.batching.objectives}}

    @property
    def _needs_embeddings(self) -> bool:
        return any(objective.traits.needs_embeddings for objective in self.batching.objectives)

    def _stack_entries(self) -> int:
        """Return the entries of S of a stack; 0 (a single batch) if a probe or loss needs embeddings or gradients."""
        alone = "gradients" in self.probe_plan.reads or self._needs_embeddings or bool(self.plan.options.terms)
        if alone:
            return 0
        return memory.entries_at_a_time(small_batches.STACK_ENTRIES, self.embedded.device)

    def _rows_of_stack(self, stack: _Stack, buffers: Buffers) -> _StackRows:
        """Run every probe on each direction of a stack, and return the rows."""
        batches, directions = stack.batches, self._directions(stack.batches, buffers)
        results = [self.probe_plan.of_direction(rows.shape.direction).run(rows) for rows in directions]
        numbers, collector = [], stack.part.collector
        if collector is not None:  # only now: no direction can run out of memory any more
            items = len(batches[0].images)
            numbers = [
                collector.numbers_of(stack.number, stack.index, items, results, rows)
                for rows, results in zip(directions, results, strict=True)
            ]
        return self._stack_rows(stack, results, numbers, buffers)

    def _directions(self, batches: Sequence[Batch], buffers: Buffers) -> tuple[DenseRows, ...]:
        """Return the rows of S of each direction of a stack as the probes read them, without hidden negatives."""
        reads = self.probe_plan.reads
        embeddings = "embeddings" in reads or self._needs_embeddings
        keys = "keys" in reads or any(rule.needs in ("keys", "related") for rule in self.plan.masks)
        directions = self._rows(self.embedded, batches, embeddings, keys, buffers, "gradients" in reads)
        return self._hide_negatives(directions, batches) if self.plan.masks else directions

    def whole_rows(self, batches: Iterable[Batch], start: int = 0) -> Iterator[tuple[DenseRows, Rows, Rows]]:
        """Yield whole rows of S of one direction, the batch of each query (n,), and its row in the S of the batch (n,).

        The rows of a batch too large for its matrix come a panel at a time. The next rows reuse their memory.

        Args:
            batches: of the sweep.
            start: number of the first batch.

        Raises:
            InputError: a probe or an objective needs a large batch whole.
        """
        buffers = Buffers()
        for stack in small_batches.stack_batches(batches, self._stack_entries()):
            if len(stack) == 1 and self._is_large(stack[0]):
                yield from (
                    (rows, np.full(len(rows.S), start), batch_rows) for rows, batch_rows in self._panels(stack[0])
                )
            else:
                for rows in self._directions(stack, buffers):
                    number, batch_rows = np.divmod(np.arange(len(rows.S)), rows.shape.queries)
                    yield rows, start + number, batch_rows
            start += len(stack)

    def _panels(self, batch: Batch) -> Iterator[tuple[DenseRows, Rows]]:
        """Yield the rows of a large batch and their indices in S, a panel at a time; each query is a batch."""
        from .large_batches import LargeBatchRunner, batch_shapes

        runner = LargeBatchRunner(self.probe_plan, self.plan.options.same_image, self.processes)
        for shape in list(batch_shapes(batch))[: 1 if batch.is_one_set else 2]:
            for rows, batch_rows in runner.sampled_rows(
                self.embedded, batch, shape.direction, np.arange(shape.queries)
            ):
                yield rows, batch_rows.numpy()

    def _rows(
        self, embedded: SplitEmbeddings, stack: Sequence[Batch], embeddings: bool, keys: bool, buffers: Buffers,
        gradients: bool,
    ) -> tuple[DenseRows, ...]:  # fmt: skip
        options = self.plan.options
        if options.terms:
            from .terms import rows_with_terms

            return (rows_with_terms(embedded, stack[0], options.terms, options.same_image),)
        return small_batches.rows_of_stack(embedded, stack, options.same_image, embeddings, keys, buffers, gradients)

    def _hide_negatives(self, directions: tuple[DenseRows, ...], stack: Sequence[Batch]) -> tuple[DenseRows, ...]:
        """Return the rows without the negatives that the plan's rules hide, in each direction."""
        guides: tuple[DenseRows | None, ...] = (None,) * len(directions)
        if any(rule.needs == "guide" for rule in self.plan.masks):
            if self.guide is None:
                raise InputError("--mask gist needs a guide, embeddings of the same items: --guide SOURCE")
            guides = self._rows(self.guide, stack, False, False, Buffers(), False)
        return tuple(
            hide_by_rules(rows, self.plan.masks, guide) for rows, guide in zip(directions, guides, strict=True)
        )

    def _results_of_large(self, stack: _Stack) -> list[list[ProbeResult]]:
        """Run every probe on each direction of a large batch; all processes share the work."""
        (batch,), collector = stack.batches, stack.part.collector

        def on_tile(done: int, of: int) -> None:
            if self.progress:
                self.progress(f"tiles of {len(batch.images)} x {len(batch.captions)}", done, of)

        from .large_batches import LargeBatchRunner

        same_image = self.plan.options.same_image
        runner = LargeBatchRunner(self.probe_plan, same_image, self.processes, on_tile, self.workers)
        directions = list(runner.run(self.embedded, batch))
        if collector is not None and self.processes.main:  # the first process alone, so that numbers are those of one
            for results in (results for results in directions if results):
                shape = results[0].shape
                sample = collector.sample.draw(stack.index, 1, shape.queries, shape.direction == "i2t")
                panels = partial(runner.sampled_rows, self.embedded, batch, shape.direction, sample)
                collector.add_large(stack.number, len(batch.images), results, panels)
        return directions

    def _is_large(self, batch: Batch) -> bool:
        """Return whether to compute a batch in tiles. Raises InputError if a batch needs tiles and cannot have them."""
        engine, embedded = self.plan.options.engine, self.embedded
        entries = len(batch.images) * len(batch.captions)
        dense = [pair for pair in self.probe_plan.pairs if needs_whole_matrix(*pair)]
        whole = self.plan.needs_matrix
        if engine == "dense" or (engine == "auto" and entries <= memory.LARGE_ENTRIES):
            return False
        if not dense and not whole and embedded.pair_scorer is None:
            return True
        from .large_batches import COPIES

        needed = 4 * COPIES * entries
        if engine == "auto" and needed <= memory.free_bytes(embedded.device) / 2:
            return False
        name = embedded.name if embedded.pair_scorer or not dense else spec_of(dense[0][0] or dense[0][1])
        raise InputError(
            f"batches of {name} must fit into memory, as it needs them whole; one of {len(batch.images)} x "
            f"{len(batch.captions)} takes about {needed / 1e9:.1f} GB. Use a smaller --batch-size"
        )

    def _stack_rows(
        self, stack: _Stack, results: Sequence[list[ProbeResult]], numbers: list[StackNumbers], buffers: Buffers
    ) -> _StackRows:
        """Return the rows of the batches of a stack from the results of each direction."""
        flat, images = [result for of_direction in results for result in of_direction], len(stack.batches[0].images)
        size, rows, queries = self.plan.batch_size_of(self.batching) or images, [], []
        for result, statistics in zip(flat, batch_statistics(flat, self._layouts, buffers), strict=True):
            key = {
                **self.key_of(result.probe, result.objective, result.direction),
                "queries": result.shape.queries,
                "items": images,
                "batch_size": size,
            }
            named = {self.plan.name_of(name): values for name, values in statistics.items()}
            rows.append(BatchStatistics(key, stack.index, result.shape.batches, named))
            if self.plan.options.per_query and result.probe.axis == "query":
                queries.append(self.query_rows(result, stack.index))
        return _StackRows(stack.number, rows, queries, numbers)

    def query_rows(self, result: ProbeResult, index: int) -> pd.DataFrame:
        """Return a row per query."""
        shape = result.shape
        batches = [index + number // shape.queries for number in range(len(shape.query_ids))]
        values = {k: v.float().cpu().numpy() for k, v in result.columns.items() if v.ndim == 1}
        named = {self.plan.name_of(name): column for name, column in values.items()}
        return pd.DataFrame(
            {
                **self.key_of(result.probe, result.objective, result.direction),
                "batch": batches,
                "query": shape.query_ids.numpy(),
                **named,
            }
        )

    def label_of(self, direction: CountedDirection) -> str:
        """Return the name of the direction under the source's sides; two views are one set."""
        if self.batching.sampling.mode == "views" and direction != "both":
            return ONE_SET
        return self.embedded.sides.label(direction)

    def key_of(self, probe: Probe, objective: Objective | None, direction: CountedDirection) -> dict[str, Any]:
        """Return the columns that identify a result: source, sampling, objective, direction, probe, ..., unit."""
        unit = getattr(probe, "unit", None)
        return {
            "source": self.embedded.name,
            "sampling": self.plan.sampling_label(self.batching),
            "seed": self.plan.options.seed,
            "objective": self._specs[objective],
            "direction": self.label_of(direction),
            "probe": self._labels[probe],
            "convention": getattr(probe, "convention", None),
            "eps": getattr(probe, "eps", float("nan")),
            **self.embedded.further_columns,
            "weight_unit": None if unit is None or objective is None else resolve_unit(objective, unit),
        }


@dataclass(frozen=True)
class PartRows:
    """The numbers of a part of a sweep."""

    batches: pd.DataFrame
    queries: pd.DataFrame
    collector: IntervalCollector | None  # sums for intervals; None: no intervals


@dataclass(frozen=True, eq=False)
class _Part:
    """Consecutive batches of a sweep; their numbers are written together."""

    key: str
    stacks: int  # number of stacks
    collector: IntervalCollector | None


@dataclass(frozen=True)
class _Stack:
    """Batches that are computed together."""

    part: _Part
    number: int  # within the part
    index: int  # number of the first batch
    batches: list[Batch]
    is_large: bool  # whether the stack is a single batch, computed in tiles or panels


@dataclass(frozen=True)
class _StackRows:
    """The rows of the batches of a stack."""

    number: int  # of the stack
    rows: list[BatchStatistics]
    queries: list[pd.DataFrame]  # rows of single queries
    numbers: list[StackNumbers]  # numbers for intervals


_LISTS = ("rows", "queries", "numbers")  # fields of _StackRows


@dataclass(frozen=True)
class BatchStatistics:
    """The statistics of a probe on consecutive batches."""

    key: dict[str, Any]  # columns that all batches share
    start: int  # number of the first batch
    size: int  # number of batches
    statistics: dict[str, Values]  # (size,) each, or (size, n) of a curve


def rows_of_batches(results: Sequence[BatchStatistics]) -> pd.DataFrame:
    """Return a row per batch and result; a statistic that a result lacks is NaN and is absent from `statistics`."""
    sizes = np.array([result.size for result in results])
    keys = pd.DataFrame([{**result.key, "statistics": " ".join(result.statistics)} for result in results])
    rows = keys.loc[keys.index.repeat(sizes)].reset_index(drop=True)
    ends = sizes.cumsum().tolist()
    columns: dict[str, Values] = {}
    batch = np.empty(ends[-1], dtype=np.int64)
    for result, end in zip(results, ends, strict=True):
        here = slice(end - result.size, end)
        batch[here] = np.arange(result.start, result.start + result.size)
        for name, values in result.statistics.items():
            if name not in columns:
                columns[name] = np.full(ends[-1], np.nan, dtype=object if values.ndim > 1 else np.float64)
            columns[name][here] = list(values) if values.ndim > 1 else values
    return pd.concat([rows.assign(batch=batch), pd.DataFrame(columns)], axis=1)


def _label(probe: Probe, probes: Sequence[Probe]) -> str:
    """Return the probe's name; its spec if another probe has the same name, eps, convention and unit."""
    twins = [other for other in probes if other != probe and type(other) is type(probe)]
    same = ("eps", "convention", "unit")
    if any(all(getattr(twin, key, None) == getattr(probe, key, None) for key in same) for twin in twins):
        spec = Spec.parse(short_spec(probe))
        spec.values.pop("unit", None)  # the rows state it
        return str(spec)
    return Spec.parse(spec_of(probe)).name
