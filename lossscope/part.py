"""Some batches of a sweep: measured in stacks by one of the processes each, or in tiles by all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from . import dense, large, memory
from .errors import InputError
from .forms.space import Space
from .large import Large
from .measure import Asked, Found, asked, measured
from .objectives.base import Objective
from .probes.base import Probe, reduced
from .processes import World
from .registry import brief, spec_of
from .sampling import Batch, Sampling
from .sources.base import Embedded
from .spec import Spec

if TYPE_CHECKING:
    from .sweep import Sweep

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Part:
    """What is fixed while batches are measured. world: the processes that share them."""

    sweep: Sweep
    embedded: Embedded
    sampling: Sampling
    objectives: Sequence[Objective]
    world: World
    progress: Progress | None

    def measured(self, start: int, stop: int, total: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of the batches `start` to `stop`, and of single queries; every process has all of them."""
        found: list[tuple[int, list[dict[str, list[Any]]], list[pd.DataFrame]]] = []
        batches = islice(self.sampling.batches(self.embedded.caption_image, start=start), stop - start)
        index, space = start, Space()
        for number, stack in enumerate(dense.stacks(list(batches), self._cells())):
            large = len(stack) == 1 and self._is_large(stack[0])
            if number % self.world.size == self.world.rank or large:
                rows, queries = [], []
                for place, one in self._large(stack[0], index) if large else self._small(stack, index, space):
                    rows.append(self._rows(one, place, stack))
                    if self.sweep.per_query and one.probe.axis == "query":
                        queries.append(self._queries(one, place))
                if self.world.main or not large:
                    found.append((number, rows, queries))
            index += len(stack)
            if self.progress:
                self.progress(f"{self.sampling.how} batches", index, total)
        found = sorted((one for own in self.world.gather(found) for one in own), key=lambda one: one[0])
        single = [frame for _, _, queries in found for frame in queries]
        wide = _below([columns for _, rows, _ in found for columns in rows])
        return wide, pd.concat(single) if single else pd.DataFrame()

    @cached_property
    def questions(self) -> Asked:
        """Which probe looks at which objective."""
        return asked(self.objectives, self.sweep.built_probes)

    @cached_property
    def _labels(self) -> dict[Probe, str]:
        """What each probe is called in the rows."""
        probes = self.sweep.built_probes
        return {probe: _label(probe, probes) for probe in probes}

    def _cells(self) -> int:
        """Similarities of one stack; 0, one batch at a time, where an objective wants the embeddings of a batch."""
        reads = self._reads()
        alone = "gradients" in reads or any(objective.embeddings for objective in self.objectives)
        return 0 if alone else dense.CELLS

    def _reads(self) -> frozenset[str]:
        return frozenset[str]().union(*(probe.reads for _, probe in self.questions))

    def _small(self, stack: Sequence[Batch], index: int, space: Space) -> list[tuple[int, Found]]:
        """All questions about a stack, with the place of its first batch; batch by batch where memory does not do."""
        try:
            return [(index, one) for one in self._dense(stack, space)]
        except (MemoryError, RuntimeError) as error:
            if len(stack) == 1 or not memory.is_lack(error):
                raise
        singles = [self._small([batch], index + place, Space()) for place, batch in enumerate(stack)]
        return [one for single in singles for one in single]

    def _dense(self, stack: Sequence[Batch], space: Space) -> list[Found]:
        """All questions about a stack."""
        reads = self._reads()
        wanted = "embeddings" in reads or any(objective.embeddings for objective in self.objectives)
        known = (wanted, "keys" in reads, space, "gradients" in reads)
        looks = dense.looks(self.embedded, stack, self.sweep.same_image, *known)
        return [one for look in looks for one in measured(look, self.questions)]

    def _large(self, batch: Batch, index: int) -> list[tuple[int, Found]]:
        """All questions about a batch, by all processes."""

        def tick(done: int, of: int) -> None:
            if self.progress:
                self.progress(f"tiles of {len(batch.images)} x {len(batch.captions)}", done, of)

        asking = Large(self.questions, self.sweep.same_image, self.world, tick, self.sweep.precision)
        return [(index, one) for one in asking.measured(self.embedded, batch)]

    def in_tiles(self) -> bool:
        """Whether anything about the first batch is answered from tiles."""
        first = next(self.sampling.batches(self.embedded.caption_image), None)
        answers = any(large.in_one_look(*question) for question in self.questions)
        return first is not None and answers and self._is_large(first)

    def _is_large(self, batch: Batch) -> bool:
        """Whether a batch is looked at in tiles. Raises InputError where that is needed and can not be."""
        engine, embedded = self.sweep.engine, self.embedded
        cells = len(batch.images) * len(batch.captions)
        whole = [question for question in self.questions if large.needs_whole(*question)]
        if engine == "dense" or (engine == "auto" and cells <= large.CELLS):
            return False
        if not whole and embedded.scorer is None:
            return True
        device = torch.device("cpu") if embedded.images is None else embedded.images.device
        needed = 4 * large.COPIES * cells
        if engine == "auto" and needed <= memory.free(device) / 2:
            return False
        name = embedded.name if embedded.scorer else spec_of(whole[0][0] or whole[0][1])
        raise InputError(
            f"batches of {name} must fit into memory, as it needs them whole; one of {len(batch.images)} x "
            f"{len(batch.captions)} takes about {needed / 1e9:.1f} GB. Use a smaller --batch-size"
        )

    def _rows(self, found: Found, index: int, stack: Sequence[Batch]) -> dict[str, list[Any]]:
        """A row per batch, as columns: its key and its statistics."""
        k = found.shape.batches
        columns = found.columns()
        row = {name: [value] * k for name, value in self._key(found).items()}
        row |= {"batch": list(range(index, index + k)), "queries": [found.shape.queries] * k}
        row |= {"batch_size": [self.sweep.batch_size or len(stack[0].images)] * k}
        for statistic in found.statistics():
            value = reduced(statistic, columns, k).cpu()
            row[statistic.name] = list(value.numpy()) if statistic.reducer == "curve" else value.tolist()
            row[f"has_{statistic.name}"] = [True] * k
        return row

    def _queries(self, found: Found, index: int) -> pd.DataFrame:
        """A row per query."""
        shape = found.shape
        batches = [index + number // shape.queries for number in range(len(shape.query_ids))]
        values = {k: v.float().cpu().numpy() for k, v in found.columns().items() if v.ndim == 1}
        return pd.DataFrame({**self._key(found), "batch": batches, "query": shape.query_ids.numpy(), **values})

    def _key(self, found: Found) -> dict[str, Any]:
        return {
            "source": self.embedded.name,
            "sampling": self.sampling.how,
            "seed": self.sweep.seed,
            "objective": None if found.objective is None else spec_of(found.objective),
            "direction": found.shape.direction,
            "probe": self._labels[found.probe],
            "convention": getattr(found.probe, "convention", None),
            "eps": getattr(found.probe, "eps", float("nan")),
        }


def _below(answers: Sequence[dict[str, list[Any]]]) -> pd.DataFrame:
    """Columns of all answers one below the other; a statistic that an answer does not have is NaN, and not there."""
    names = dict.fromkeys(name for columns in answers for name in columns)
    whole: dict[str, list[Any]] = {name: [] for name in names}
    for columns in answers:
        size = len(columns["batch"])
        for name, column in whole.items():
            column += columns.get(name) or [False if name.startswith("has_") else float("nan")] * size
    return pd.DataFrame(whole)


def _label(probe: Probe, probes: Sequence[Probe]) -> str:
    """The probe's name, or its spec where another one has the same name, eps and convention."""
    twins = [one for one in probes if one != probe and type(one) is type(probe)]
    same = ("eps", "convention")
    if any(all(getattr(one, key, None) == getattr(probe, key, None) for key in same) for one in twins):
        return brief(probe)
    return Spec.parse(spec_of(probe)).name
