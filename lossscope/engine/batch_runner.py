"""Run the probes on batches: small ones in stacks, one process each; large ones in tiles, all processes together."""

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
from lossscope.core.sides import ONE_SET, sides_entry
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
    """Run the probes of a sweep on its batches; its fields are the same for all batches."""

    plan: SweepPlan
    batching: Batching
    embedded: SplitEmbeddings
    processes: ProcessGroup  # those that share the batches
    progress: Progress | None
    guide: SplitEmbeddings | None = None  # the same items under another model, which a rule for negatives compares
    units: SamplingUnits | None = None  # of the split, which intervals are over; None: no intervals
    workers: Workers = ALONE

    def run(self, batches: Sequence[Batch]) -> PartRows:
        """Return the numbers of some batches."""
        ((_, part),) = self.run_parts([("", 0, batches)], len(batches))
        return part

    def run_parts(
        self, parts: Iterable[tuple[str, int, Sequence[Batch]]], total: int
    ) -> Iterator[tuple[str, PartRows]]:
        """Yield the key and the numbers of each part as soon as its last stack is there; threads begin the next.

        Args:
            parts: key, the number of the first batch, and consecutive batches; drawn one ahead.
            total: how many batches the sweep has, for `progress`.
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
        """Return the rows of a part from those that each process has of its stacks."""
        of_all = [stack for of_process in self.processes.gather(finished) for stack in of_process]
        in_order = sorted(of_all, key=lambda stack: stack.number)
        queries = [rows for stack in in_order for rows in stack.queries]
        batches = rows_of_batches([rows for stack in in_order for rows in stack.rows])
        return PartRows(batches, pd.concat(queries) if queries else pd.DataFrame(), collector)

    def _stacks(self, key: str, batches: Sequence[Batch], start: int) -> Iterator[_Stack]:
        """Yield the stacks of a part, whose first batch has the number `start`."""
        stacks = list(small_batches.stack_batches(batches, self._stack_entries()))
        index, part = start, _Part(key, len(stacks), self._collector(batches))
        for number, stack in enumerate(stacks):
            yield _Stack(part, number, index, stack, len(stack) == 1 and self._is_large(stack[0]))
            index += len(stack)

    def _run_own(self, stack: _Stack, buffers: Buffers) -> tuple[_Stack, _StackRows | None]:
        """Return a stack and its rows; without where another process has it."""
        is_own = stack.number % self.processes.size == self.processes.rank
        return stack, self._run_stack(stack, buffers) if is_own else None

    def _run_stack(self, stack: _Stack, buffers: Buffers) -> _StackRows:
        """Both directions of a stack; batch by batch where the stack does not fit into memory."""
        try:
            return self._rows_of_stack(stack, buffers)
        except (MemoryError, RuntimeError) as error:
            if len(stack.batches) == 1 or not memory.is_out_of_memory(error):
                raise
        singles = [
            self._run_stack(replace(stack, index=stack.index + place, batches=[batch]), Buffers())
            for place, batch in enumerate(stack.batches)
        ]
        rows, queries, numbers = ([one for single in singles for one in getattr(single, name)] for name in _LISTS)
        return _StackRows(stack.number, rows, queries, numbers)

    def _run_large(self, stacks: Iterable[_Stack]) -> Iterator[tuple[_Stack, _StackRows | None]]:
        """Yield batches that all processes compute together; rows are of the first one."""
        for stack in stacks:
            results = self._results_of_large(stack)
            yield stack, self._stack_rows(stack, results, [], Buffers()) if self.processes.main else None

    def _collector(self, batches: Sequence[Batch]) -> IntervalCollector | None:
        """Return what collects the sums of some batches; None without intervals."""
        if self.units is None or not batches:
            return None
        queries, candidates = self._queries_of_direction, max(len(batches[0].images), len(batches[0].captions))
        sample = QuerySample.of(self.units.number, queries, candidates, self.plan.options.seed)
        return IntervalCollector(self.probe_plan, self.units, sample, self._units_of, self._complete, self._full_items)

    @property
    def _queries_of_direction(self) -> int:
        """About how many queries of one direction the sweep has."""
        return self.batching.sampling.count(self.embedded.relations) * len(self._first_batch.captions)

    @property
    def _full_items(self) -> int:
        """Items of a full batch: of the first one, as only the last may have fewer."""
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
        """Return rows that are batches of one query with their embeddings, keys and ids of items."""
        joined = self.batching.sampling.mode == "views"
        embedded = self.embedded.joined if joined else self.embedded
        return with_items(embedded, with_vectors(embedded, rows), True)

    def sums(self, collector: IntervalCollector) -> NamedSums:
        """Return the sums of a part by the names that summary rows have; all processes have those of the first."""
        stacks = [stack for own in self.processes.gather(collector.stacks) for stack in own]
        size = self.plan.batch_size_of(self.batching) or self._full_items
        named: NamedSums = {}
        if self.processes.main:
            for ((probe, objective, direction), statistic), sums in collector.sums(stacks).items():
                keys = {**self.key_of(probe, objective, direction), "batch_size": size}
                named[name_of(keys, self.plan.name_of(statistic))] = sums
        return self.processes.gather(named)[0]

    def require_rows(self, batch: Batch) -> None:
        """Raise InputError where rows of S of a batch cannot have the further candidates, or the rules, of the plan."""
        keys = any(rule.needs in ("keys", "related") for rule in self.plan.masks)
        directions = self._rows(self.embedded, [batch], False, keys, Buffers(), False)
        if self.plan.masks:
            self._hide_negatives(directions, [batch])

    @cached_property
    def probe_plan(self) -> ProbePlan:
        """Which probe is run on which objective."""
        return ProbePlan.of(self.batching.objectives, self.plan.probes)

    @cached_property
    def _layouts(self) -> Layouts:
        return Layouts()

    @cached_property
    def _labels(self) -> dict[Probe, str]:
        """What each probe is called in the rows."""
        return {probe: _label(probe, self.plan.probes) for probe in self.plan.probes}

    @cached_property
    def _specs(self) -> dict[Objective | None, str | None]:
        return {None: None, **{objective: spec_of(objective) for objective in self.batching.objectives}}

    @property
    def _needs_embeddings(self) -> bool:
        return any(objective.traits.needs_embeddings for objective in self.batching.objectives)

    def _stack_entries(self) -> int:
        """Entries of S of one stack; 0, one batch at a time, where embeddings or gradients of one batch are needed."""
        alone = "gradients" in self.probe_plan.reads or self._needs_embeddings or bool(self.plan.options.terms)
        if alone:
            return 0
        return memory.entries_at_a_time(small_batches.STACK_ENTRIES, self.embedded.device)

    def _rows_of_stack(self, stack: _Stack, buffers: Buffers) -> _StackRows:
        """Every probe on each direction of a stack."""
        batches, directions = stack.batches, self._directions(stack.batches, buffers)
        every = [self.probe_plan.of_direction(rows.shape.direction).run(rows) for rows in directions]
        numbers, collector = [], stack.part.collector
        if collector is not None:  # only now, when no direction can fail for want of memory
            items = len(batches[0].images)
            numbers = [
                collector.numbers_of(stack.number, stack.index, items, results, rows)
                for rows, results in zip(directions, every, strict=True)
            ]
        return self._stack_rows(stack, every, numbers, buffers)

    def _directions(self, batches: Sequence[Batch], buffers: Buffers) -> tuple[DenseRows, ...]:
        """Return the rows of S of each direction of a stack, as the probes read them, without hidden negatives."""
        reads = self.probe_plan.reads
        embeddings = "embeddings" in reads or self._needs_embeddings
        keys = "keys" in reads or any(rule.needs in ("keys", "related") for rule in self.plan.masks)
        directions = self._rows(self.embedded, batches, embeddings, keys, buffers, "gradients" in reads)
        return self._hide_negatives(directions, batches) if self.plan.masks else directions

    def whole_rows(self, batches: Iterable[Batch], start: int = 0) -> Iterator[tuple[DenseRows, Rows, Rows]]:
        """Yield whole rows of S of one direction, the batch of each query (n,), and its row in the S of the batch (n,).

        Of a batch too large for its matrix they come a panel at a time. The next rows reuse their memory.

        Args:
            batches: of the sweep.
            start: number of the first one.

        Raises:
            InputError: a large batch is needed whole.
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
        """Yield the rows of S of a large batch, a panel at a time, each query as a batch, and their rows in S."""
        from .large_batches import LargeBatchRunner, batch_shapes

        runner = LargeBatchRunner(self.probe_plan, self.plan.options.same_image, self.processes)
        for shape in list(batch_shapes(batch))[: 1 if batch.is_one_set else 2]:
            for rows, places in runner.sampled_rows(self.embedded, batch, shape.direction, np.arange(shape.queries)):
                yield rows, places.numpy()

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
        """Leave out the negatives that the plan's rules hide, in each direction."""
        guides: tuple[DenseRows | None, ...] = (None,) * len(directions)
        if any(rule.needs == "guide" for rule in self.plan.masks):
            if self.guide is None:
                raise InputError("--mask gist needs a guide: the embeddings of the same items, --guide SOURCE")
            guides = self._rows(self.guide, stack, False, False, Buffers(), False)
        return tuple(
            hide_by_rules(rows, self.plan.masks, guide) for rows, guide in zip(directions, guides, strict=True)
        )

    def _results_of_large(self, stack: _Stack) -> list[list[ProbeResult]]:
        """Every probe on each direction of a batch, by all processes together."""
        (batch,), collector = stack.batches, stack.part.collector

        def on_tile(done: int, of: int) -> None:
            if self.progress:
                self.progress(f"tiles of {len(batch.images)} x {len(batch.captions)}", done, of)

        from .large_batches import LargeBatchRunner

        same_image = self.plan.options.same_image
        runner = LargeBatchRunner(self.probe_plan, same_image, self.processes, on_tile, self.workers)
        every = list(runner.run(self.embedded, batch))
        if collector is not None and self.processes.main:  # alone, so that the numbers are those of one process
            for results in (results for results in every if results):
                shape = results[0].shape
                places = collector.sample.places(stack.index, 1, shape.queries, shape.direction == "i2t")
                panels = partial(runner.sampled_rows, self.embedded, batch, shape.direction, places)
                collector.add_large(stack.number, len(batch.images), results, panels)
        return every

    def _is_large(self, batch: Batch) -> bool:
        """Whether a batch is computed in tiles. Raises InputError where it would have to be and cannot."""
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
        """Return the rows of the batches of a stack, from the results of each direction."""
        every, images = [one for of_direction in results for one in of_direction], len(stack.batches[0].images)
        size, rows, queries = self.plan.batch_size_of(self.batching) or images, [], []
        for one, statistics in zip(every, batch_statistics(every, self._layouts, buffers), strict=True):
            key = {
                **self.key_of(one.probe, one.objective, one.direction),
                "queries": one.shape.queries,
                "items": images,
                "batch_size": size,
            }
            named = {self.plan.name_of(name): values for name, values in statistics.items()}
            rows.append(BatchStatistics(key, stack.index, one.shape.batches, named))
            if self.plan.options.per_query and one.probe.axis == "query":
                queries.append(self.query_rows(one, stack.index))
        return _StackRows(stack.number, rows, queries, numbers)

    def query_rows(self, result: ProbeResult, index: int) -> pd.DataFrame:
        """A row per query."""
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
        """What the direction is called of the source's sides; two views are one set."""
        if self.batching.sampling.mode == "views" and direction != "both":
            return ONE_SET
        return self.embedded.sides.label(direction)

    def key_of(self, probe: Probe, objective: Objective | None, direction: CountedDirection) -> dict[str, Any]:
        """Return the columns of rows that say what was computed, of what, and how."""
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
            **sides_entry(self.embedded.sides),
            "weight_unit": None if unit is None or objective is None else resolve_unit(objective, unit),
        }


@dataclass(frozen=True)
class PartRows:
    """The numbers of a part of a sweep."""

    batches: pd.DataFrame
    queries: pd.DataFrame
    collector: IntervalCollector | None  # of what intervals take; None: no intervals


@dataclass(frozen=True, eq=False)
class _Part:
    """Consecutive batches of a sweep, whose numbers are written together."""

    key: str
    stacks: int  # how many it has
    collector: IntervalCollector | None


@dataclass(frozen=True)
class _Stack:
    """Batches that are computed together."""

    part: _Part
    number: int  # within the part
    index: int  # number of the first batch
    batches: list[Batch]
    is_large: bool  # whether it is one batch that is computed in tiles or panels


@dataclass(frozen=True)
class _StackRows:
    """The rows of the batches of a stack."""

    number: int  # of the stack
    rows: list[BatchStatistics]
    queries: list[pd.DataFrame]  # rows of single queries
    numbers: list[StackNumbers]  # what intervals take


_LISTS = ("rows", "queries", "numbers")  # of _StackRows


@dataclass(frozen=True)
class BatchStatistics:
    """What one probe reports of consecutive batches."""

    key: dict[str, Any]  # the columns that all of them share
    start: int  # number of the first batch
    size: int  # number of batches
    statistics: dict[str, Values]  # (size,) each, or (size, n) of a curve


def rows_of_batches(results: Sequence[BatchStatistics]) -> pd.DataFrame:
    """A row per batch and result; a statistic that a result does not have is NaN, and not named in `statistics`."""
    sizes = np.array([one.size for one in results])
    keys = pd.DataFrame([{**one.key, "statistics": " ".join(one.statistics)} for one in results])
    rows = keys.loc[keys.index.repeat(sizes)].reset_index(drop=True)
    ends = sizes.cumsum().tolist()
    columns: dict[str, Values] = {}
    batch = np.empty(ends[-1], dtype=np.int64)
    for one, end in zip(results, ends, strict=True):
        here = slice(end - one.size, end)
        batch[here] = np.arange(one.start, one.start + one.size)
        for name, values in one.statistics.items():
            if name not in columns:
                columns[name] = np.full(ends[-1], np.nan, dtype=object if values.ndim > 1 else np.float64)
            columns[name][here] = list(values) if values.ndim > 1 else values
    return pd.concat([rows.assign(batch=batch), pd.DataFrame(columns)], axis=1)


def _label(probe: Probe, probes: Sequence[Probe]) -> str:
    """The probe's name, or its spec where another probe has the same name, eps, convention and unit."""
    twins = [one for one in probes if one != probe and type(one) is type(probe)]
    same = ("eps", "convention", "unit")
    if any(all(getattr(one, key, None) == getattr(probe, key, None) for key in same) for one in twins):
        spec = Spec.parse(short_spec(probe))
        spec.values.pop("unit", None)  # the rows state it
        return str(spec)
    return Spec.parse(spec_of(probe)).name
