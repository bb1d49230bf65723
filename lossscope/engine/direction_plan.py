"""The probes of one direction of a batch: their statistics in order, and the names of these."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from lossscope.core.sides import Sides
from lossscope.core.types import Direction
from lossscope.probes.base import Statistic
from lossscope.registry import short_spec

from .run_probes import ProbePlan, label_of


@dataclass(frozen=True)
class DirectionPlan:
    """The probes that are run on one direction of a batch, and the order of their statistics."""

    plan: ProbePlan
    direction: Direction
    sides: Sides

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of each statistic: `i2t/C_neg`; `i2t/PROBE/C_neg` where two probes have a statistic of one name."""
        pairs = self.plan.pairs
        triples = [(pairs[i][0], short_spec(pairs[i][1]), statistic.name) for i, statistic in self.statistics]
        number = Counter(name for _, _, name in triples)
        label = self.sides.label
        return tuple(
            f"{label(label_of(objective, self.direction))}/{name if number[name] == 1 else f'{probe}/{name}'}"
            for objective, probe, name in triples
        )

    @cached_property
    def statistics(self) -> tuple[tuple[int, Statistic], ...]:
        """Every statistic that is one number, with the index of its probe in the plan."""
        return tuple(
            (index, statistic)
            for index, (objective, probe) in enumerate(self.plan.pairs)
            for statistic in probe.statistics(objective)
            if statistic.reducer != "curve"
        )
