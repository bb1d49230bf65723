"""source x objectives x probes -> frame: every batch once, every objective and probe on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
import torch

from . import dense, large, memory
from .errors import InputError
from .forms.space import Space
from .frames import Frame, summarise
from .measure import Asked, Found, asked, measured
from .objectives.base import Objective
from .probes.base import Probe, reduced
from .processes import World
from .registry import build, spec_of
from .sampling import Batch, How, Sampling
from .similarity import SameImage
from .sources.base import Embedded

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Sweep:
    """What is looked at, and how batches are made.

    objectives, probes: specs. sampling: `pairs`, `images`, or None for what each objective needs (one sweep each).
    batch_size None: all in one. same_image: what another caption of the same image is. per_query: keep every row.
    part: batches after which a part is written. engine: `dense` holds the matrix of a batch, `tiled` never does; `auto`
    goes by its size.
    """

    objectives: tuple[str, ...]
    probes: tuple[str, ...] = ("cocos",)
    sampling: How | None = None
    batch_size: int | None = 128
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    captions: str = "all"
    same_image: SameImage = "keep"
    per_query: bool = False
    part: int = 64
    engine: Literal["auto", "dense", "tiled"] = "auto"

    def plans(self) -> list[tuple[Sampling, list[Objective]]]:
        """One sampling per way of batching that the objectives need. Raises InputError for one that can not."""
        found: dict[How, list[Objective]] = {}
        for spec in self.objectives:
            objective: Objective = build("objectives", spec)
            natural: How = "images" if objective.positives == "many" else "pairs"
            how = self.sampling or natural
            if how == "images" and objective.positives == "one":
                raise InputError(
                    f"--sampling images gives each query several positives, which {spec_of(objective)} does not take; "
                    "use --sampling pairs, or leave it out"
                )
            for probe in self._probes():
                probe.check(objective)
            found.setdefault(how, []).append(objective)
        return [(self._sampling(how), objectives) for how, objectives in found.items()]

    def run(
        self, embedded: Embedded, frame: Frame | None = None, progress: Progress | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Summary rows and the wide rows of every batch; parts go to `frame` as they are finished.

        A frame that already has parts of the same sweep is gone on with.
        """
        parts: list[pd.DataFrame] = []
        done = frame.keys() if frame else set()
        for sampling, objectives in self.plans():
            total = sampling.count(embedded.caption_image)
            if total == 0:
                raise InputError(
                    f"batches must fit the split; {embedded.name} has fewer items than --batch-size "
                    f"{self.batch_size}. Use a smaller one, or --keep-last"
                )
            for start in range(0, total, self.part):
                key = f"{sampling.how}-{start}"
                stop = min(start + self.part, total)
                if key not in done:
                    rows, queries = self._part(embedded, sampling, objectives, start, stop, progress, total)
                    parts.append(rows)
                    if frame:
                        frame.append(rows, key, queries if self.per_query else None)
        if frame:
            frame.finish()
        rows = frame.read() if frame else pd.concat(parts, ignore_index=True)
        return summarise(rows, self.units()), rows

    def units(self) -> dict[str, str]:
        """Unit of every statistic, in an order that keeps that of each objective as far as one order can."""
        found: dict[str, str] = {}
        order: list[str] = []
        for objective in (build("objectives", spec) for spec in self.objectives):
            place = 0
            for statistic in (s for probe in self._probes() for s in probe.statistics(objective)):
                if statistic.reducer == "curve":
                    continue
                if statistic.name not in found:
                    order.insert(place, statistic.name)
                    found[statistic.name] = statistic.unit
                place = order.index(statistic.name) + 1
        return {name: found[name] for name in order}

    def _probes(self) -> list[Probe]:
        return [build("probes", spec) for spec in self.probes]

    def _sampling(self, how: How) -> Sampling:
        captions: Any = self.captions
        return Sampling(how, self.batch_size, self.seed, self.shuffle, self.drop_last, captions)

    def _part(
        self,
        embedded: Embedded,
        sampling: Sampling,
        objectives: Sequence[Objective],
        start: int,
        stop: int,
        progress: Progress | None,
        total: int,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        rows, queries, space = [], [], Space()
        found = sampling.batches(embedded.caption_image, start=start)
        batches = [batch for _, batch in zip(range(start, stop), found, strict=False)]
        index = start
        for stack in dense.stacks(batches, self._cells(objectives)):
            for one in self._measured(embedded, stack, objectives, space):
                rows.append(self._rows(one, embedded, sampling, index, stack))
                if self.per_query and one.probe.axis == "query":
                    queries.append(self._queries(one, embedded, sampling, index))
            index += len(stack)
            if progress:
                progress(f"{sampling.how} batches", index, total)
        return pd.concat(rows, ignore_index=True), pd.concat(queries) if queries else pd.DataFrame()

    def _cells(self, objectives: Sequence[Objective]) -> int:
        """Similarities of one stack; 0, one batch at a time, where an objective wants the embeddings of a batch."""
        return 0 if any(objective.embeddings for objective in objectives) else dense.CELLS

    def _measured(
        self, embedded: Embedded, stack: Sequence[Batch], objectives: Sequence[Objective], space: Space
    ) -> Iterator[Found]:
        questions = asked(objectives, self._probes())
        if len(stack) == 1 and self._is_large(embedded, stack[0], questions):
            yield from large.Large(questions, self.same_image, World()).measured(embedded, stack[0])
            return
        reads = frozenset[str]().union(*(probe.reads for _, probe in questions))
        wanted = "embeddings" in reads or any(objective.embeddings for objective in objectives)
        for look in dense.looks(embedded, stack, self.same_image, wanted, "keys" in reads, space):
            yield from measured(look, questions)

    def _is_large(self, embedded: Embedded, batch: Batch, questions: Asked) -> bool:
        """Whether a batch is looked at in tiles. Raises InputError where that is needed and can not be."""
        cells = len(batch.images) * len(batch.captions)
        whole = [question for question in questions if large.needs_whole(*question)]
        if self.engine == "dense" or (self.engine == "auto" and cells <= large.CELLS):
            return False
        if not whole and embedded.scorer is None:
            return True
        device = torch.device("cpu") if embedded.images is None else embedded.images.device
        needed = 4 * large.COPIES * cells
        if self.engine == "auto" and needed <= memory.free(device) / 2:
            return False
        name = embedded.name if embedded.scorer else spec_of(whole[0][0] or whole[0][1])
        raise InputError(
            f"batches of {name} must fit into memory, as it needs them whole; one of {len(batch.images)} x "
            f"{len(batch.captions)} takes about {needed / 1e9:.1f} GB. Use a smaller --batch-size"
        )

    def _rows(self, found: Found, embedded: Embedded, sampling: Sampling, index: int, stack: Sequence[Batch]) -> Any:
        """A row per batch: its key and its statistics."""
        k = found.shape.batches
        columns = found.columns()
        row: dict[str, Any] = self._key(found, embedded, sampling)
        row |= {"batch": range(index, index + k), "queries": found.shape.queries}
        row |= {"batch_size": self.batch_size or len(stack[0].images)}
        for statistic in found.statistics():
            value = reduced(statistic, columns, k).cpu().numpy()
            row[statistic.name] = list(value) if statistic.reducer == "curve" else value
            row[f"has_{statistic.name}"] = True
        return pd.DataFrame(row)

    def _queries(self, found: Found, embedded: Embedded, sampling: Sampling, index: int) -> pd.DataFrame:
        """A row per query."""
        shape = found.shape
        batches = [index + number // shape.queries for number in range(len(shape.query_ids))]
        values = {k: v.float().cpu().numpy() for k, v in found.columns().items() if v.ndim == 1}
        key = self._key(found, embedded, sampling)
        return pd.DataFrame({**key, "batch": batches, "query": shape.query_ids.numpy(), **values})

    def _key(self, found: Found, embedded: Embedded, sampling: Sampling) -> dict[str, Any]:
        return {
            "source": embedded.name,
            "sampling": sampling.how,
            "seed": self.seed,
            "objective": None if found.objective is None else spec_of(found.objective),
            "direction": found.shape.direction,
            "probe": spec_of(found.probe).partition(":")[0],
            "convention": getattr(found.probe, "convention", None),
            "eps": getattr(found.probe, "eps", float("nan")),
        }
