"""From what a loss saw in a batch to statistics by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lossscope.core.sides import Sides
from lossscope.core.similarity import normalise
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.batch_share import DirectionShare
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import OneBatch, plain_mode
from lossscope.objectives.base import Gradient, Objective
from lossscope.probes.base import Probe

from .loss_gap import loss_gap
from .observed import Observed
from .shared_batch import BatchPart

_KEPT = 16  # plans of batches that are kept, one for each objective, sides and directions


@dataclass(frozen=True)
class BatchStatistics:
    """Runs the probes, with a plan for each kind of batch."""

    probes: tuple[Probe, ...]
    _plans: dict[tuple[Objective, Sides, tuple[Direction, ...]], OneBatch] = field(default_factory=dict, init=False)

    def of(self, observed: Observed, objective: Objective | None) -> tuple[bool, dict[str, float]]:
        """Return whether all inputs are finite, and the statistics of one loss.

        Args:
            observed: what the loss saw.
            objective: to look with; None: the loss itself.
        """
        if observed.rows is None:
            values = _numbers(observed.numbers)
            return bool(values.pop("finite", 1.0)), values
        chosen = objective or observed.objective
        assert chosen is not None, "what is watched without an objective has its own"
        plan = self.plan(chosen, observed.sides, observed.directions)
        rows, second = _rows_of(observed, plan)
        finite, statistics = plan(rows.S, rows.mask, rows.queries, rows.candidates, second)
        numbers = dict(observed.numbers)
        if observed.value is not None and objective is None:
            numbers["loss"] = observed.value
            if not isinstance(chosen, Gradient):
                numbers["loss_gap"] = loss_gap(observed, chosen)
        return finite, {**dict(zip(plan.columns, statistics, strict=True)), **_numbers(numbers)}

    def part(self, observed: Observed, objective: Objective) -> BatchPart:
        """Return what the probes compute of the rows of one process of several.

        Args:
            observed: with rows that have the candidates of all processes.
            objective: to look with.
        """
        plan = self.plan(objective, observed.sides, observed.directions)
        first, second = _rows_of(observed, plan)
        rows = [first] if second is None else [first, second]
        with plain_mode(first.S.device):
            some = [one.or_one_row() for one in rows]
            second = None if second is None else some[1]
            finite, results = plan.results(some[0].S, some[0].mask, some[0].queries, some[0].candidates, second)
            shares = [
                DirectionShare(own, of_direction, len(one.S))
                for own, of_direction, one in zip(plan.of_directions, results, rows, strict=True)
            ]
        return BatchPart(plan, shares, [one.S.shape[1] for one in rows], finite, observed.offset)

    def plan(self, objective: Objective, sides: Sides, directions: tuple[Direction, ...] | None = None) -> OneBatch:
        """Return the plan of a kind of batch.

        Args:
            objective: whose weights are analysed.
            sides: names of the sides.
            directions: that are computed; None: all that the sides have.

        Raises:
            InputError: a probe does not support the objective.
        """
        chosen = directions or (DIRECTIONS[:1] if sides.is_one_set else DIRECTIONS)
        key = (objective, sides, chosen)
        if key not in self._plans:
            if len(self._plans) >= _KEPT:  # a learnt scale makes another objective of every step
                self._plans.clear()
            self._plans[key] = OneBatch(objective, self.probes, sides, chosen)
        return self._plans[key]


def _rows_of(observed: Observed, plan: OneBatch) -> tuple[DirectionRows, DirectionRows | None]:
    """Return the rows of both directions, the second where it is not the first transposed, as the probes need them."""
    assert observed.rows is not None
    rows, second = observed.rows, observed.second
    if not observed.has_unit_vectors:
        rows = _with_unit_vectors(rows, plan.needs_embeddings)
        second = None if second is None else _with_unit_vectors(second, plan.needs_embeddings)
    return rows, second


def _with_unit_vectors(rows: DirectionRows, needed: bool) -> DirectionRows:
    """Return the rows with embeddings of unit length; without any where no probe reads them."""
    if not needed or rows.queries is None or rows.candidates is None:
        return replace(rows, queries=None, candidates=None)
    return replace(rows, queries=normalise(rows.queries.float()), candidates=normalise(rows.candidates.float()))


def _numbers(numbers: Mapping[str, Tensor]) -> dict[str, float]:
    """Return tensors () as numbers, in one transfer."""
    if not numbers:
        return {}
    device = next(iter(numbers.values())).device
    values = torch.stack([x.detach().double().to(device) for x in numbers.values()]).tolist()
    return dict(zip(numbers, values, strict=True))
