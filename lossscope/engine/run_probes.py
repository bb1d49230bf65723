"""Run probes on rows of S: each probe once for every objective, or once if it needs no objective."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import CountedDirection, Direction, WeightUnit
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import unit_factor
from lossscope.probes.base import Accumulators, Probe, Statistic, concatenate
from lossscope.probes.views.view import BatchShape, RowsOfS, View
from lossscope.registry import short_spec, spec_of

Pair = tuple[Objective | None, Probe]  # objective None: the probe needs none
_READS_OF_TILES = frozenset({"counts", "extremes"})


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe on rows of S."""

    probe: Probe
    objective: Objective | None  # None: the probe needs none
    shape: BatchShape
    accumulators: Accumulators
    skipped: Tensor  # (k·q,) bool, queries without a positive or without a negative

    @property
    def direction(self) -> CountedDirection:
        """The direction of the rows; `both` if the objective has one gradient for both directions."""
        return label_of(self.objective, self.shape.direction)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the statistics of each batch."""
        statistics = self.probe.statistics(self.objective)
        layers = getattr(self.probe, "layers", None)  # a probe of layers gets their names from its columns
        return statistics if layers is None else (*statistics, *layers(self.columns))

    @cached_property
    def columns(self) -> dict[str, Tensor]:
        """Column -> number per element of the probe's axis; with `skipped` if the elements are queries."""
        columns = self.probe.finish(self.accumulators)
        return {**columns, "skipped": self.skipped} if self.probe.axis == "query" else columns

    @property
    def of_queries(self) -> dict[str, Tensor]:
        """Column -> number per query, for columns with one number per query."""
        return {name: column for name, column in self.columns.items() if column.ndim == 1}


@dataclass(frozen=True)
class ProbePlan:
    """Which probe runs on which objective; probes that need no objective come first."""

    pairs: tuple[Pair, ...]
    sides: Sides = IMAGE_TEXT  # names of the directions
    direction: Direction = "i2t"  # of the rows, if the plan is for one direction

    @classmethod
    def of(cls, objectives: Sequence[Objective], probes: Sequence[Probe], sides: Sides = IMAGE_TEXT) -> ProbePlan:
        """Return the plan of every probe on every objective."""
        without: list[Pair] = [(None, probe) for probe in probes if not probe.needs_objective]
        pairs = ((objective, probe) for objective in objectives for probe in probes if probe.needs_objective)
        return cls((*without, *pairs), sides)

    def of_direction(self, direction: Direction) -> ProbePlan:
        """Return the part of the plan for a direction: objectives that have a gradient in this direction.

        A gradient for both directions belongs to i2t, where the rows of W are images.
        """
        pairs = (
            (objective, probe)
            for objective, probe in self.pairs
            if objective is None or label_of(objective, direction) in objective.counted_directions
        )
        return replace(self, pairs=tuple(pairs), direction=direction)

    @cached_property
    def statistics(self) -> tuple[tuple[int, Statistic], ...]:
        """Every statistic of a batch that is a single number, with the index of its probe in the plan."""
        return tuple(
            (index, statistic)
            for index, (objective, probe) in enumerate(self.pairs)
            for statistic in probe.statistics(objective)
            if statistic.reducer != "curve"
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of each statistic: `i2t/C_neg`; `i2t/PROBE/C_neg` if two probes have a statistic of the same name."""
        number = Counter(statistic.name for _, statistic in self.statistics)
        names = []
        for index, statistic in self.statistics:
            (objective, probe), name = self.pairs[index], statistic.name
            label = self.sides.label(label_of(objective, self.direction))
            names.append(f"{label}/{name if number[name] == 1 else f'{short_spec(probe)}/{name}'}")
        return tuple(names)

    def run(self, rows: RowsOfS) -> list[ProbeResult]:
        """Return the result of every probe on rows of S, in the order of the plan."""
        views = {objective: View(rows, objective) for objective, _ in self.pairs}
        return [
            ProbeResult(probe, objective, rows.shape, probe.tile(views[objective]), rows.skipped)
            for objective, probe in self.pairs
        ]

    @property
    def reads(self) -> frozenset[str]:
        """The inputs that the probes read from rows of S."""
        return frozenset[str]().union(*(probe.reads for _, probe in self.pairs))

    def split(self) -> tuple[ProbePlan, ProbePlan]:
        """Return the part that takes a single pass over tiles, and the part that needs whole rows."""
        tiled = tuple(pair for pair in self.pairs if needs_one_pass(*pair))
        others = tuple(pair for pair in self.pairs if pair not in tiled)
        return replace(self, pairs=tiled), replace(self, pairs=others)

    @property
    def eps(self) -> list[float]:
        """The thresholds in the scale of each objective's paper, in which tiles count."""
        thresholds = []
        for objective, probe in self.pairs:
            eps = getattr(probe, "eps", None)
            if eps is not None and objective is not None:
                factor = unit_factor(objective, getattr(probe, "unit", None))
                assert factor is not None, "a probe of tiles has weights in proportion to those of the paper"
                thresholds.append(eps / factor)
        return thresholds

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives that a probe needs."""
        return tuple(dict.fromkeys(objective for objective, _ in self.pairs if objective is not None))


def in_unit(probe: Probe, unit: WeightUnit) -> Probe:
    """Return the probe with this unit of weights if it names none; a published convention has the unit of its paper."""
    if getattr(probe, "unit", unit) is not None:
        return probe
    published = getattr(probe, "convention", "corrected") != "corrected"
    counted: Probe = replace(probe, unit="paper" if published else unit)  # type: ignore[type-var]
    return counted


def needs_one_pass(objective: Objective | None, probe: Probe) -> bool:
    """Return whether a single pass over tiles is enough for the probe under the objective."""
    if not probe.reads <= _READS_OF_TILES:
        return False
    if objective is None:
        return True
    if objective.counting_rule is None or getattr(probe, "convention", "corrected") != "corrected":
        return False
    return unit_factor(objective, getattr(probe, "unit", None)) is not None


def needs_whole_matrix(objective: Objective | None, probe: Probe) -> bool:
    """Return whether the probe needs all rows at once: rows influence each other, or released counters mix them."""
    if "gradients" in probe.reads:
        return True
    if objective is None:
        return False
    mixes_rows = objective.coupled or objective.traits.square or objective.traits.needs_embeddings
    return mixes_rows or getattr(probe, "convention", "corrected") != "corrected"


def label_of(objective: Objective | None, direction: Direction) -> CountedDirection:
    """Return the direction that numbers belong to; `both` if the objective has one gradient for both directions."""
    has_both = objective is not None and "both" in objective.counted_directions
    return "both" if has_both and direction == "i2t" else direction


def name_of_objective(objective: Objective) -> str:
    """Return the spec of an objective; the name of its type if it has no spec."""
    try:
        return spec_of(objective)
    except Exception:  # of any kind: users write objectives
        return type(objective).__name__


def merge_parts(parts: Sequence[ProbeResult], shape: BatchShape | None = None) -> ProbeResult:
    """Merge the results of queries of one batch; `shape` is the shape of the batch, None: of these queries."""
    first = parts[0]
    if shape is None:
        shape = replace(first.shape, query_ids=torch.cat([part.shape.query_ids for part in parts]))
    accumulators = concatenate(first.probe.axis, [part.accumulators for part in parts])
    skipped = torch.cat([part.skipped for part in parts])
    return replace(first, shape=shape, accumulators=accumulators, skipped=skipped)


def append_part(parts: list[ProbeResult], part: ProbeResult) -> list[ProbeResult]:
    """Append a part of a batch, or merge it at once, which takes less memory, unless its elements are queries."""
    if part.probe.axis == "query" or not parts:
        return [*parts, part]
    return [merge_parts([*parts, part], part.shape)]
