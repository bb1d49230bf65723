"""source x objectives x probes -> frame: every batch once, every objective and probe on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import pandas as pd

from lossscope.core.batches import Sampling, SamplingMode
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import SameImage
from lossscope.errors import InputError
from lossscope.io.frames import Frame, reported_statistics, summarise
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.registry import build, spec_of

from .batch_runner import BatchRunner, Progress
from .tiled.bfloat16 import require_comparisons

# similarities after which a part is written at the latest: of pairs with what is counted from sums and cheap probes, of
# anything else, with a model in every batch
_CHEAP_CELLS, _CELLS, _SLOW_CELLS = 1 << 24, 1 << 20, 1 << 18


@dataclass(frozen=True)
class Sweep:
    """What is looked at, and how batches are made.

    objectives, probes: specs. sampling: `pairs`, `images`, or None for what each objective needs (one sweep each).
    batch_size None: all in one. same_image: what another caption of the same image is. per_query: keep every row.
    part: batches after which a part is written at the latest. engine: `dense` holds the matrix of a batch, `tiled`
    never does; `auto` goes by its size. precision: of tiles; bf16 makes them in bfloat16 and what that leaves undecided
    again, exactly. Batches that are not looked at in tiles, and panels of whole rows, are always float32.
    """

    objectives: tuple[str, ...]
    probes: tuple[str, ...] = ("cocos",)
    sampling: SamplingMode | None = None
    batch_size: int | None = 128
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    captions: str = "all"
    same_image: SameImage = "keep"
    per_query: bool = False
    part: int = 512
    engine: Literal["auto", "dense", "tiled"] = "auto"
    precision: Literal["float32", "bf16"] = "float32"

    def plans(self) -> list[tuple[Sampling, list[Objective]]]:
        """One sampling per way of batching that the objectives need. Raises InputError for one that can not."""
        found: dict[SamplingMode, list[Objective]] = {}
        weighing = any(probe.needs_objective for probe in self.built_probes)
        for spec in self.objectives:
            objective: Objective = build("objectives", spec)
            if self.precision == "bf16":
                require_comparisons([objective])
            natural: SamplingMode = "images" if objective.positives == "many" else "pairs"
            how = self.sampling or natural
            if not weighing:  # nothing is asked of objectives; they say how batches are made, if nobody else does
                found.setdefault(how, [])
                continue
            if how == "images" and objective.positives == "one":
                raise InputError(
                    f"--sampling images gives each query several positives, which {spec_of(objective)} does not take; "
                    "use --sampling pairs, or leave it out"
                )
            for probe in self.built_probes:
                probe.check(objective)
            found.setdefault(how, []).append(objective)
        return [(self._sampling(how), objectives) for how, objectives in found.items()]

    def run(
        self,
        embedded: SplitEmbeddings,
        frame: Frame | None = None,
        progress: Progress | None = None,
        processes: ProcessGroup | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Summary rows and the wide rows of every batch; parts go to `frame` as they are finished.

        A frame that already has parts of the same sweep is gone on with. world: processes that share the work, each of
        which calls this; the first one writes the frame and has all rows.
        """
        processes = processes or ProcessGroup()
        parts: list[pd.DataFrame] = []
        done = processes.gather(frame.keys() if frame and processes.main else set())[0]
        expected = {key for sampling, _ in self.plans() for key in self._keys(sampling, embedded)}
        if not done <= expected:  # in every process, so that none waits for the others
            name, known = frame.path if frame else "the frame", min(expected, default="none")
            raise InputError(
                f"{name} must hold parts of this sweep, such as {known}; it has {min(done - expected)}, which another "
                "version or source made. Choose another --out or remove it"
            )
        for sampling, objectives in self.plans():
            total = sampling.count(embedded.caption_image)
            if total == 0:
                raise InputError(
                    f"batches must fit the split; {embedded.name} has fewer items than --batch-size "
                    f"{self.batch_size}. Use a smaller one, or --keep-last"
                )
            part = BatchRunner(self, embedded, sampling, objectives, processes, progress)
            batches = sampling.batches(embedded.caption_image)
            for key, (start, size) in self._keys(sampling, embedded).items():
                own = list(islice(batches, size))
                if key not in done:
                    rows, queries = part.measured(own, start, total)
                    parts.append(rows)
                    if frame and processes.main:
                        frame.append(rows, key, queries if self.per_query else None)
        if frame and processes.main:
            frame.finish()
            parts = [frame.read()] if done else parts
        rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        return (summarise(rows, self._units_of(rows)) if len(rows) else pd.DataFrame()), rows

    def _keys(self, sampling: Sampling, embedded: SplitEmbeddings) -> dict[str, tuple[int, int]]:
        """Names of the parts; the first batch of each, and how many batches it has."""
        total, size = sampling.count(embedded.caption_image), self._part_size(sampling, embedded)
        parts = [(start, min(size, total - start)) for start in range(0, total, size)]
        return {f"{sampling.mode}-{start}-{number}": (start, number) for start, number in parts}

    def _part_size(self, sampling: Sampling, embedded: SplitEmbeddings) -> int:
        """Batches of a part: fewer where they take long, so that little is lost when a sweep is killed."""
        if self.batch_size is None:
            return 1
        from_sums = all(build("objectives", spec).counting_rule is not None for spec in self.objectives)
        cheap = sampling.mode != "images" and from_sums and all(probe.cheap for probe in self.built_probes)
        slow = embedded.pair_scorer is not None or any("gradients" in probe.reads for probe in self.built_probes)
        cells = _SLOW_CELLS if slow else _CHEAP_CELLS if cheap else _CELLS
        return max(min(self.part, cells // self.batch_size**2), 1)

    def tried(self, embedded: SplitEmbeddings) -> None:
        """Raise InputError when a probe can not look at the source, which a batch of two tells."""
        small = replace(self, batch_size=2, shuffle=False, drop_last=False, per_query=False)
        for sampling, objectives in small.plans():
            first = list(islice(sampling.batches(embedded.caption_image), 1))
            BatchRunner(small, embedded, sampling, objectives, ProcessGroup(), None).measured(first, 0, 1)

    def in_tiles(self, embedded: SplitEmbeddings) -> bool:
        """Whether any batch is looked at in tiles, which `precision` is about."""
        return any(BatchRunner(self, embedded, *plan, ProcessGroup(0, 1), None).in_tiles() for plan in self.plans())

    def units(self) -> dict[str, str]:
        """Unit of every statistic, in an order that keeps that of each objective as far as one order can."""
        found: dict[str, str] = {}
        order: list[str] = []
        for objective in (build("objectives", spec) for spec in self.objectives):
            place = 0
            for statistic in (s for probe in self.built_probes for s in probe.statistics(objective)):
                if statistic.reducer == "curve":
                    continue
                if statistic.name not in found:
                    order.insert(place, statistic.name)
                    found[statistic.name] = statistic.unit
                place = order.index(statistic.name) + 1
        return {name: found[name] for name in order}

    def _units_of(self, rows: pd.DataFrame) -> dict[str, str]:
        """Those, and that of the layers of a model, which only its gradients name."""
        units = self.units()
        told = frozenset[str]().union(*reported_statistics(rows)[0])
        layers = (name for name in rows if name in told - units.keys() and pd.api.types.is_numeric_dtype(rows[name]))
        return {**units, **dict.fromkeys(layers, "norm")}

    @cached_property
    def built_probes(self) -> list[Probe]:
        """The probes of the specs."""
        return [build("probes", spec) for spec in self.probes]

    def _sampling(self, how: SamplingMode) -> Sampling:
        captions: Any = self.captions
        return Sampling(how, self.batch_size, self.seed, self.shuffle, self.drop_last, captions)
