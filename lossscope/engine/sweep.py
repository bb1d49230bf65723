"""source x objectives x probes -> frame: read every batch once, and run every objective and probe on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import pandas as pd

from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.sides import plural
from lossscope.core.types import Progress, WeightUnit
from lossscope.errors import InputError
from lossscope.io.frames import Frame, summarise
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import answer_unit
from lossscope.registry import build, spec_of

from .batch_runner import BatchRunner, PartRows
from .options import SweepOptions
from .plan import SweepPlan
from .run_probes import in_unit
from .sweep_intervals import NamedSums, SweepIntervals, join_sums, sums_of_table, sums_table
from .workers import Behind, number_of_jobs


@dataclass(frozen=True)
class SweepResult:
    """The numbers of a sweep."""

    summary: pd.DataFrame  # SUMMARY columns: mean and deviation over batches
    batches: pd.DataFrame  # a row per batch, objective, direction and probe
    query_parts: Sequence[pd.DataFrame] = ()  # rows of single queries, without a frame
    frame: Frame | None = None  # holds the rows of single queries
    without_interval: str | None = None  # statistics without an interval, and the reason

    @cached_property
    def queries(self) -> pd.DataFrame:
        """Rows of single queries, from the frame if there is one; needs per_query."""
        if self.frame is not None:
            return self.frame.read("query")
        parts = [part for part in self.query_parts if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


@dataclass(frozen=True)
class Sweep(SweepOptions):
    """The options of a sweep over a source, and `run`.

    >>> Sweep(("triplet",), probes=("cocos:eps=0.01",)).plan.batchings[0].sampling.mode
    'pairs'
    """

    @cached_property
    def plan(self) -> SweepPlan:
        """The objects behind the options. Raises SpecError or InputError for invalid or conflicting options."""
        return SweepPlan.of(self)

    def record(self) -> dict[str, Any]:
        """Return the options for a frame's manifest; probes state the unit that they count in."""
        return {**super().record(), "probes": self._probes_in(answer_unit(self.plan.objectives))}

    def beside(self, objectives: Iterable[Objective]) -> Sweep:
        """Return the sweep for a comparison with these objectives, in the unit that all of them share."""
        objectives_here = self.plan.objectives
        unit = answer_unit((*objectives_here, *objectives))
        return self if unit == answer_unit(objectives_here) else replace(self, probes=self._probes_in(unit))

    def _probes_in(self, unit: WeightUnit) -> tuple[str, ...]:
        """Return the specs of the probes; a probe that names no unit of weights gets this unit."""
        probes = [(spec, build("probes", spec)) for spec in self.probes]
        counted = ((spec, probe, in_unit(probe, unit)) for spec, probe in probes)
        return tuple(dict.fromkeys(spec if probe == other else spec_of(other) for spec, probe, other in counted))

    @float32_products()
    def run(
        self,
        embedded: SplitEmbeddings,
        frame: Frame | None = None,
        progress: Progress | None = None,
        processes: ProcessGroup | None = None,
        guide: SplitEmbeddings | None = None,
        jobs: int | None = None,
    ) -> SweepResult:
        """Compute every statistic of every batch, and lock the frame meanwhile.

        Args:
            embedded: the split.
            frame: parts are written to it when they are finished; finished parts of the same sweep are kept.
            progress: called with (label, done, of).
            processes: processes that share the work; each calls this method, and the first writes the frame.
            guide: the same items under another model, for the rule `gist`.
            jobs: threads that share the work; no bit of a number depends on them. None: see `number_of_jobs`. Losses
                and probes of users, models and GPUs always take one thread.

        Returns:
            The numbers of all batches. Every process but the first returns the numbers computed in this call.

        Raises:
            InputError: the options do not fit the source, or the frame is of another sweep or in use by another
                process.
        """
        processes = processes or ProcessGroup()
        with _lock(frame if processes.main else None):
            return self._run(embedded, frame, progress, processes, guide, number_of_jobs(jobs))

    def _run(
        self,
        embedded: SplitEmbeddings,
        frame: Frame | None,
        progress: Progress | None,
        processes: ProcessGroup,
        guide: SplitEmbeddings | None,
        jobs: int,
    ) -> SweepResult:
        embedded = embedded if self.is_sample else embedded.in_memory
        plan = self.plan_for(embedded, guide)
        frame = frame if processes.main else None
        done = processes.gather(frame.keys() if frame else set())[0]
        self._require_own(plan, done, embedded, frame)  # in every process, so that no process waits for the others
        units, refusal = self._units(embedded)
        batches: list[pd.DataFrame] = []
        queries: list[pd.DataFrame] = []
        sums: NamedSums = {}
        with plan.workers(embedded, jobs) as workers, Behind(workers.jobs) as behind:
            for batching in plan.batchings:
                runner = BatchRunner(plan, batching, embedded, processes, progress, guide, units, workers)
                for key, part in self._parts(runner, frame, done):
                    batches.append(part.batches)
                    more = None if part.collector is None else runner.sums(part.collector)
                    sums = sums if more is None else join_sums((sums, more))
                    if frame:  # written while the next part is computed
                        behind.do(partial(self._append, frame, key, part, more))
                    else:
                        queries.append(part.queries)
            rows = pd.concat(batches, ignore_index=True) if batches else pd.DataFrame()
            if frame and done:
                behind.wait()
                rows = frame.read()
                if units is not None and not frame.has_items():
                    units, refusal = None, "the frame has parts of a version without intervals"
                if units is not None:
                    sums = {}
                    for file, table in frame.read_items():
                        sums = join_sums((sums, sums_of_table(table, units.number, file)))
            intervals = None
            if units is not None and self.interval is not None:
                intervals = SweepIntervals(units, self.interval, sums, plan.within_one)
            summary = self._summary(plan, rows, intervals)  # while the last part is written
        units, refusal, summary = processes.gather((units, refusal, summary))[0]  # only the first reads the frame
        if self.interval_groups is not None and units is not None and self.interval is not None:
            from .jackknife import Jackknife

            level, groups = self.interval, self.interval_groups
            with plan.workers(embedded, jobs) as workers:
                jackknife = Jackknife(plan, embedded, units, groups, level, processes, progress, guide, workers)
                summary = jackknife.fill(summary)
        if frame:
            from lossscope.io.frame_summary import finished_entries

            frame.finish(**finished_entries(summary, _items(embedded), embedded.recipe.get("data")))
            if self.is_sample:
                from .sampled.checkpoint import StripsFile

                StripsFile.beside(frame).remove()
        if self.is_sample:
            from .sampled.summary import lacking

            refusal = lacking(summary, plan)
        elif intervals is not None:
            refusal = intervals.lacking(summary, self.interval_groups)
        return SweepResult(summary, rows, queries, frame, refusal)

    def _units(self, embedded: SplitEmbeddings) -> tuple[SamplingUnits | None, str | None]:
        """Return the units of intervals, or None, and the reason if the source cannot have intervals."""
        if self.interval is None or self.is_sample:
            return None, None
        units = SamplingUnits.of(embedded.relations)
        return (units, None) if units.refusal is None else (None, units.refusal)

    def _parts(self, runner: BatchRunner, frame: Frame | None, done: set[str]) -> Iterator[tuple[str, PartRows]]:
        """Yield the key and the numbers of each unfinished part. Raises InputError if there is no batch."""
        embedded, sampling = runner.embedded, runner.batching.sampling
        total = sampling.count(embedded.relations)
        if total == 0:
            raise InputError(
                f"batches must fit the split; {embedded.name} has fewer items than --batch-size "
                f"{self.batch_size}. Use a smaller one, or --keep-last"
            )
        batches = sampling.batches(embedded.relations)
        parts = (
            (key, start, list(islice(batches, size)))
            for key, (start, size) in runner.plan.parts(runner.batching, embedded).items()
        )
        left = (part for part in parts if part[0] not in done)
        if not self.is_sample:
            yield from runner.run_parts(left, total)
            return
        from .sampled.checkpoint import StripsFile
        from .sampled.runner import SampleRunner

        for key, _, of_part in left:
            yield key, PartRows(*SampleRunner(runner, StripsFile.beside(frame), key).run(of_part[0]), None)

    def _append(self, frame: Frame, key: str, part: PartRows, sums: NamedSums | None) -> None:
        """Write a part."""
        items = None if sums is None else sums_table(sums)
        frame.append(part.batches, key, part.queries if self.per_query else None, items)

    def _summary(self, plan: SweepPlan, rows: pd.DataFrame, intervals: SweepIntervals | None) -> pd.DataFrame:
        """Summarise rows of batches."""
        if not len(rows):
            return pd.DataFrame()
        ends = None if intervals is None else intervals.ends
        summary = summarise(rows, plan.units_of(rows), plan.totals, ends)
        if not self.is_sample:
            return summary
        from .sampled.summary import with_intervals

        return with_intervals(summary, rows, plan)

    def require_possible(self, embedded: SplitEmbeddings, guide: SplitEmbeddings | None = None) -> None:
        """Raise InputError for options that do not fit a source, and for a guide with other items; cheap."""
        self.plan_for(embedded, guide)

    def plan_for(self, embedded: SplitEmbeddings, guide: SplitEmbeddings | None = None) -> SweepPlan:
        """Return the plan for a source, built and checked once. Raises as `require_possible` does."""
        if self._bound and self._bound[0][1] is embedded and self._bound[0][2] is guide:
            return self._bound[0][0]
        plan = self.plan.for_relations(embedded.relations)
        if guide is not None:
            require_fitting_guide(embedded, guide)
        for batching in plan.batchings:
            batching.sampling.fitting(embedded.relations)
        if plan.needs_matrix or any(batching.sampling.mode == "views" for batching in plan.batchings):
            _require_rows(plan, embedded, guide)
        self._bound[:] = [(plan, embedded, guide)]
        return plan

    @cached_property
    def _bound(self) -> list[tuple[SweepPlan, SplitEmbeddings, SplitEmbeddings | None]]:
        """The plan for the last source and its guide; a new source replaces it."""
        return []

    def _require_own(self, plan: SweepPlan, done: set[str], embedded: SplitEmbeddings, frame: Frame | None) -> None:
        expected = {key for batching in plan.batchings for key in plan.parts(batching, embedded)}
        if not done <= expected:
            name, example = frame.path if frame else "the frame", min(expected, default="none")
            raise InputError(
                f"{name} must hold parts of this sweep, such as {example}; it has {min(done - expected)}, which "
                "another version or source made. Choose another --out or remove it"
            )


def _lock(frame: Frame | None) -> AbstractContextManager[object]:
    """Lock the folder of a frame."""
    if frame is None:
        return nullcontext()
    from lossscope.io.folder_lock import lock_folder

    return lock_folder(frame.path)


def _items(embedded: SplitEmbeddings) -> dict[str, int]:
    """Return the number of items of each side: `{"images": 600, "captions": 3000}`."""
    relations, sides = embedded.relations, embedded.sides
    items = {plural(sides.first): relations.first}
    return items if sides.second is None else {**items, plural(sides.second): relations.second}


def require_fitting_guide(embedded: SplitEmbeddings, guide: SplitEmbeddings) -> None:
    """Raise InputError unless a guide has the items of a source, in the same order."""
    same = (guide.image_ids, guide.caption_ids) == (embedded.image_ids, embedded.caption_ids)
    if not same:
        raise InputError(
            f"--guide must hold the items of {embedded.name}, in the same order; {guide.name} holds others"
        )


def _require_rows(plan: SweepPlan, embedded: SplitEmbeddings, guide: SplitEmbeddings | None) -> None:
    """Raise InputError if rows of S cannot have what the plan asks for; test a batch of two."""
    small = replace(plan.with_batches_of_two(), masks=plan.masks)
    for batching in small.batchings:
        if plan.needs_matrix or batching.sampling.mode == "views":
            first = next(batching.sampling.batches(embedded.relations), None)
            if first is not None:
                BatchRunner(small, batching, embedded, ProcessGroup(0, 1), None, guide).require_rows(first)


def require_probes_work(plan: SweepPlan, embedded: SplitEmbeddings) -> None:
    """Raise InputError if a probe of the plan cannot work on the source; test a batch of two."""
    if embedded.shards is not None:
        return  # a batch of two would read rows far apart; the plan has already checked the probes of a sample
    small = plan.for_relations(embedded.relations).with_batches_of_two()
    for batching in small.batchings:
        first = list(islice(batching.sampling.batches(embedded.relations), 1))
        if not first:
            raise InputError(f"{embedded.name} must have a batch of two {plural(embedded.sides.first)}; it has none")
        BatchRunner(small, batching, embedded, ProcessGroup(), None).run(first)
