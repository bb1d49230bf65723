"""What a sweep computes, as plain options, and what is built of them: probes, objectives, batches and parts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import pandas as pd

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import SameImage, SamplingMode
from lossscope.errors import InputError
from lossscope.io.frames import reported_statistics
from lossscope.objectives.base import Objective
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.probes.base import Probe
from lossscope.registry import build, spec_of

from .tiled.bfloat16 import require_comparisons

# entries of S after which a part is written at the latest: for batches of pairs whose counts follow from sums and cheap
# probes, for any others, and for sources that run a model on every batch
_CHEAP_ENTRIES, _ENTRIES, _SLOW_ENTRIES = 1 << 24, 1 << 20, 1 << 18


@dataclass(frozen=True)
class SweepOptions:
    """What is computed, and how batches are made: plain values, as the manifest of a frame records them."""

    objectives: tuple[ObjectiveLike, ...]  # specs; from Python also objectives, and losses of your own
    probes: tuple[str, ...] = ("cocos",)  # specs
    sampling: SamplingMode | None = None  # None: what each objective needs, one pass over the source for each
    batch_size: int | None = 128  # None: everything in one batch
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    captions: str = "all"  # or `first`, of each image
    same_image: SameImage = "keep"  # what another caption of the same image is
    per_query: bool = False  # keep the rows of single queries
    part: int = 512  # batches after which a part is written at the latest
    engine: Literal["auto", "dense", "tiled"] = "auto"  # dense holds the matrix of a batch, tiled never does
    precision: Literal["float32", "bf16"] = "float32"  # of tiles; what bf16 leaves undecided is computed again exactly


@dataclass(frozen=True)
class Batching:
    """One way of making batches, and the objectives that take them."""

    sampling: Sampling
    objectives: tuple[Objective, ...]


@dataclass(frozen=True)
class SweepPlan:
    """The objects behind the options of a sweep, built once."""

    options: SweepOptions
    probes: tuple[Probe, ...]
    objectives: tuple[Objective, ...]
    batchings: tuple[Batching, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batchings", self._batchings())

    @classmethod
    def of(cls, options: SweepOptions) -> SweepPlan:
        """Build the probes and objectives of the specs.

        Raises SpecError for a spec that is none, InputError for an objective that does not fit the options.
        """
        probes = tuple(build("probes", spec) for spec in options.probes)
        return cls(options, probes, tuple(as_objective(one) for one in options.objectives))

    def with_probes(self, probes: tuple[Probe, ...]) -> SweepPlan:
        """Return the plan of the same objectives under other probes."""
        options = replace(self.options, probes=tuple(spec_of(probe) for probe in probes))
        return SweepPlan(options, probes, self.objectives)

    def with_batches_of_two(self) -> SweepPlan:
        """Return the same plan for batches of two pairs or images, in file order: enough to see a probe work."""
        options = replace(self.options, batch_size=2, shuffle=False, drop_last=False, per_query=False)
        return SweepPlan(options, self.probes, self.objectives)

    def parts(self, batching: Batching, embedded: SplitEmbeddings) -> dict[str, tuple[int, int]]:
        """Return the key of every part of a frame -> its first batch and its number of batches."""
        total, size = batching.sampling.count(embedded.caption_image), self._part_size(batching, embedded)
        sizes = [(start, min(size, total - start)) for start in range(0, total, size)]
        return {f"{batching.sampling.mode}-{start}-{number}": (start, number) for start, number in sizes}

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of every statistic, in an order that keeps the order of each objective as far as one order can."""
        units: dict[str, str] = {}
        order: list[str] = []
        for objective in self.objectives:
            place = 0
            for statistic in (one for probe in self.probes for one in probe.statistics(objective)):
                if statistic.reducer == "curve":
                    continue
                if statistic.name not in units:
                    order.insert(place, statistic.name)
                    units[statistic.name] = statistic.unit
                place = order.index(statistic.name) + 1
        return {name: units[name] for name in order}

    @cached_property
    def totals(self) -> frozenset[str]:
        """Statistics that are numbers of a whole batch, not means over its queries."""
        every = (one for objective in self.objectives for probe in self.probes for one in probe.statistics(objective))
        return frozenset(one.name for one in every if one.reducer in ("sum", "zeros", "true"))

    def units_of(self, rows: pd.DataFrame) -> dict[str, str]:
        """Return the units of all statistics in rows of batches: the layers of a model are known from its rows only."""
        reported = frozenset[str]().union(*reported_statistics(rows)[0])
        names = (name for name in rows if name in reported - self.units.keys())
        layers = [name for name in names if pd.api.types.is_numeric_dtype(rows[name])]
        return {**self.units, **dict.fromkeys(layers, "norm")}

    def _batchings(self) -> tuple[Batching, ...]:
        """One per way of batching that the objectives need. Raises InputError for an objective that cannot take one."""
        if self.options.precision == "bf16":
            require_comparisons(self.objectives)
        by_mode: dict[SamplingMode, list[Objective]] = {}
        needs_objective = any(probe.needs_objective for probe in self.probes)
        for objective in self.objectives:
            natural: SamplingMode = "images" if objective.positives == "many" else "pairs"
            mode = self.options.sampling or natural
            objectives = by_mode.setdefault(mode, [])
            if not needs_objective:  # objectives only say how batches are made, where no option does
                continue
            if mode == "images" and objective.positives == "one":
                raise InputError(
                    f"--sampling images gives each query several positives, which {spec_of(objective)} does not take; "
                    "use --sampling pairs, or leave it out"
                )
            for probe in self.probes:
                probe.check(objective)
            objectives.append(objective)
        return tuple(Batching(self._sampling_of(mode), tuple(own)) for mode, own in by_mode.items())

    def _sampling_of(self, mode: SamplingMode) -> Sampling:
        one = self.options
        return Sampling(mode, one.batch_size, one.seed, one.shuffle, one.drop_last, one.captions)  # type: ignore[arg-type]

    def _part_size(self, batching: Batching, embedded: SplitEmbeddings) -> int:
        """Batches of a part: fewer where they take long, so that little is lost when a sweep is killed."""
        if self.options.batch_size is None:
            return 1
        from_sums = all(objective.counting_rule is not None for objective in self.objectives)
        cheap = batching.sampling.mode != "images" and from_sums and all(probe.cheap for probe in self.probes)
        slow = embedded.pair_scorer is not None or any("gradients" in probe.reads for probe in self.probes)
        entries = _SLOW_ENTRIES if slow else _CHEAP_ENTRIES if cheap else _ENTRIES
        return max(min(self.options.part, entries // self.options.batch_size**2), 1)
