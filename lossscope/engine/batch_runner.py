"""Batches of a sweep: measured in stacks by one of the processes each, or in tiles by all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from lossscope.core import memory
from lossscope.core.batches import Batch, Sampling
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.buffers import Buffers
from lossscope.probes.base import Probe
from lossscope.registry import short_spec, spec_of
from lossscope.spec import Spec

from . import large_batches, small_batches
from .large_batches import LargeBatchRunner
from .run_probes import ProbePlan, ProbeResult, Values, batch_statistics, plan_probes, run_probes

if TYPE_CHECKING:
    from .plan import Sweep

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BatchRunner:
    """What is fixed while batches are measured. world: the processes that share them."""

    sweep: Sweep
    embedded: SplitEmbeddings
    sampling: Sampling
    objectives: Sequence[Objective]
    processes: ProcessGroup
    progress: Progress | None

    def measured(self, batches: Sequence[Batch], start: int, total: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of batches, the first of which is `start`, and of single queries; every process has all of them."""
        done: list[_Told] = []
        index, space = start, Buffers()
        for number, stack in enumerate(small_batches.stack_batches(batches, self._cells())):
            large_batches = len(stack) == 1 and self._is_large(stack[0])
            if number % self.processes.size == self.processes.rank or large_batches:
                looks = self._large(stack[0], index) if large_batches else self._small(stack, index, space)
                if self.processes.main or not large_batches:
                    done.append(self._told(number, looks, len(stack[0].images)))
            index += len(stack)
            if self.progress:
                self.progress(f"{self.sampling.mode} batches", index, total)
        every = sorted((one for own in self.processes.gather(done) for one in own), key=lambda one: one.number)
        queries = [frame for one in every for frame in one.queries]
        return _below([row for one in every for row in one.rows]), pd.concat(queries) if queries else pd.DataFrame()

    @cached_property
    def questions(self) -> ProbePlan:
        """Which probe looks at which objective."""
        return plan_probes(self.objectives, self.sweep.built_probes)

    @cached_property
    def _labels(self) -> dict[Probe, str]:
        """What each probe is called in the rows."""
        probes = self.sweep.built_probes
        return {probe: _label(probe, probes) for probe in probes}

    def _cells(self) -> int:
        """Similarities of one stack; 0, one batch at a time, where an objective wants the embeddings of a batch."""
        reads = self._reads()
        alone = "gradients" in reads or any(objective.needs_embeddings for objective in self.objectives)
        return 0 if alone else small_batches.CELLS

    def _reads(self) -> frozenset[str]:
        return frozenset[str]().union(*(probe.reads for _, probe in self.questions))

    def _small(self, stack: Sequence[Batch], index: int, space: Buffers) -> list[tuple[int, list[ProbeResult]]]:
        """All questions about each direction of a stack, with the place of its first batch; batch by batch where
        memory does not do."""
        try:
            return [(index, some) for some in self._dense(stack, space)]
        except (MemoryError, RuntimeError) as error:
            if len(stack) == 1 or not memory.is_out_of_memory(error):
                raise
        singles = [self._small([batch], index + place, Buffers()) for place, batch in enumerate(stack)]
        return [some for single in singles for some in single]

    def _dense(self, stack: Sequence[Batch], space: Buffers) -> list[list[ProbeResult]]:
        """All questions about each direction of a stack."""
        reads = self._reads()
        wanted = "embeddings" in reads or any(objective.needs_embeddings for objective in self.objectives)
        known = (wanted, "keys" in reads, space, "gradients" in reads)
        looks = small_batches.rows_of_stack(self.embedded, stack, self.sweep.same_image, *known)
        return [list(run_probes(look, self.questions)) for look in looks]

    def _large(self, batch: Batch, index: int) -> list[tuple[int, list[ProbeResult]]]:
        """All questions about each direction of a batch, by all processes."""

        def tick(done: int, of: int) -> None:
            if self.progress:
                self.progress(f"tiles of {len(batch.images)} x {len(batch.captions)}", done, of)

        asking = LargeBatchRunner(self.questions, self.sweep.same_image, self.processes, tick, self.sweep.precision)
        return [(index, some) for some in asking.measured(self.embedded, batch)]

    def in_tiles(self) -> bool:
        """Whether anything about the first batch is answered from tiles."""
        first = next(self.sampling.batches(self.embedded.caption_image), None)
        answers = any(large_batches.needs_one_pass(*question) for question in self.questions)
        return first is not None and answers and self._is_large(first)

    def _is_large(self, batch: Batch) -> bool:
        """Whether a batch is looked at in tiles. Raises InputError where that is needed and can not be."""
        engine, embedded = self.sweep.engine, self.embedded
        cells = len(batch.images) * len(batch.captions)
        whole = [question for question in self.questions if large_batches.needs_whole(*question)]
        if engine == "dense" or (engine == "auto" and cells <= large_batches.CELLS):
            return False
        if not whole and embedded.pair_scorer is None:
            return True
        device = torch.device("cpu") if embedded.images is None else embedded.images.device
        needed = 4 * large_batches.COPIES * cells
        if engine == "auto" and needed <= memory.free_bytes(device) / 2:
            return False
        name = embedded.name if embedded.pair_scorer else spec_of(whole[0][0] or whole[0][1])
        raise InputError(
            f"batches of {name} must fit into memory, as it needs them whole; one of {len(batch.images)} x "
            f"{len(batch.captions)} takes about {needed / 1e9:.1f} GB. Use a smaller --batch-size"
        )

    def _told(self, number: int, looks: Sequence[tuple[int, list[ProbeResult]]], images: int) -> _Told:
        """What is told of the batches of a stack, which have so many images."""
        answers = iter(batch_statistics([one for _, found in looks for one in found]))
        size, rows, queries = self.sweep.batch_size or images, [], []
        for place, found in looks:
            for one in found:
                key = {**self._key(one), "queries": one.shape.queries, "batch_size": size}
                rows.append(_Answer(key, place, one.shape.batches, next(answers)))
                if self.sweep.per_query and one.probe.axis == "query":
                    queries.append(self._queries(one, place))
        return _Told(number, rows, queries)

    def _queries(self, found: ProbeResult, index: int) -> pd.DataFrame:
        """A row per query."""
        shape = found.shape
        batches = [index + number // shape.queries for number in range(len(shape.query_ids))]
        values = {k: v.float().cpu().numpy() for k, v in found.columns().items() if v.ndim == 1}
        return pd.DataFrame({**self._key(found), "batch": batches, "query": shape.query_ids.numpy(), **values})

    @cached_property
    def _specs(self) -> dict[Objective | None, str | None]:
        return {None: None, **{objective: spec_of(objective) for objective in self.objectives}}

    def _key(self, found: ProbeResult) -> dict[str, Any]:
        return {
            "source": self.embedded.name,
            "sampling": self.sampling.mode,
            "seed": self.sweep.seed,
            "objective": self._specs[found.objective],
            "direction": found.shape.direction,
            "probe": self._labels[found.probe],
            "convention": getattr(found.probe, "convention", None),
            "eps": getattr(found.probe, "eps", float("nan")),
        }


@dataclass(frozen=True)
class _Told:
    """Rows of the batches of a stack. number: of the stack. queries: frames of single queries."""

    number: int
    rows: list[_Answer]
    queries: list[pd.DataFrame]


@dataclass(frozen=True)
class _Answer:
    """Statistics, (k,) or (k, n) each, of k = `size` batches from `start` on, and what they have in common."""

    key: dict[str, Any]
    start: int
    size: int
    statistics: dict[str, Values]


def _below(answers: Sequence[_Answer]) -> pd.DataFrame:
    """A row per batch and answer; a statistic that an answer does not have is NaN, and not among `statistics`."""
    sizes = np.array([answer.size for answer in answers])
    keys = pd.DataFrame([{**answer.key, "statistics": " ".join(answer.statistics)} for answer in answers])
    rows = keys.loc[keys.index.repeat(sizes)].reset_index(drop=True)
    ends = sizes.cumsum().tolist()
    columns: dict[str, Values] = {}
    batch = np.empty(ends[-1], dtype=np.int64)
    for answer, end in zip(answers, ends, strict=True):
        here = slice(end - answer.size, end)
        batch[here] = np.arange(answer.start, answer.start + answer.size)
        for name, values in answer.statistics.items():
            if name not in columns:
                columns[name] = np.full(ends[-1], np.nan, dtype=object if values.ndim > 1 else np.float64)
            columns[name][here] = list(values) if values.ndim > 1 else values
    return pd.concat([rows.assign(batch=batch), pd.DataFrame(columns)], axis=1)


def _label(probe: Probe, probes: Sequence[Probe]) -> str:
    """The probe's name, or its spec where another one has the same name, eps and convention."""
    twins = [one for one in probes if one != probe and type(one) is type(probe)]
    same = ("eps", "convention")
    if any(all(getattr(one, key, None) == getattr(probe, key, None) for key in same) for one in twins):
        return short_spec(probe)
    return Spec.parse(spec_of(probe)).name
