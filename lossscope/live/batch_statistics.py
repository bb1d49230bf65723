"""Compute statistics by name from what a loss saw in a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from lossscope.core.distributed import ProcessGroup
from lossscope.core.memory import LARGE_ENTRIES
from lossscope.core.sides import Sides
from lossscope.core.similarity import normalise
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import OneBatch, plain_mode
from lossscope.engine.run_probes import name_of_objective, needs_one_pass, needs_whole_matrix
from lossscope.engine.shares import require_shares
from lossscope.engine.weighed_queries import WeighedQueries
from lossscope.errors import InputError
from lossscope.objectives.base import Gradient, Objective
from lossscope.probes.base import Probe
from lossscope.registry import short_spec

from .batch_inputs import BatchRows
from .given_weights import GivenWeights
from .observed import MOST_ENTRIES, Observed
from .shared_batch import BatchPart, merge_processes

_ENTRIES = 1 << 21  # of S, for sampled rows in memory at a time
_OBJECTIVE_LOSS = "objective_loss"  # its name until the comparison with the loss
_KEPT = 16  # kept plans, one for each objective, sides and directions


@dataclass(frozen=True)
class BatchStatistics:
    """Run the probes, with a plan for each kind of batch."""

    probes: tuple[Probe, ...]
    _plans: dict[tuple[Objective, Sides, tuple[Direction, ...]], OneBatch] = field(default_factory=dict, init=False)

    def of(self, observed: Observed, objective: Objective | None) -> tuple[bool, dict[str, float]]:
        """Return whether all inputs are finite, and the statistics of one loss.

        Args:
            observed: what the loss saw.
            objective: of the probes; None: the loss itself.
        """
        if observed.rows is None:
            values = _numbers(observed.numbers)
            return bool(values.pop("finite", 1.0)), values
        chosen, plan = self._plan_of(observed, objective)
        if observed.drawn_from is not None:
            self._require_rows_alone(chosen)
        if observed.drawn_from is not None or self._is_tiled(observed, chosen):
            finite, statistics, _ = merge_processes(ProcessGroup(), 0, partial(self._part, plan, observed))
        else:
            finite, numbers = plan(_rows_of(observed, plan))
            statistics = dict(zip(plan.columns, numbers, strict=True))
        means = _numbers({**observed.numbers, **_losses(observed, chosen, objective)})
        return finite, {**statistics, **with_loss_gap(means)}

    def weighed(self, observed: Observed, objective: Objective | None) -> dict[str, WeighedQueries]:
        """Return direction -> the weights of its queries.

        Args:
            observed: what the loss saw, of a whole batch.
            objective: of the probes; None: the loss itself.
        """
        _, plan = self._plan_of(observed, objective)
        return plan.weighed(_rows_of(observed, plan))

    def _plan_of(self, observed: Observed, objective: Objective | None) -> tuple[Objective, OneBatch]:
        """Return the objective of the probes, that of the batch where none is given, and the plan."""
        chosen = objective or observed.objective
        assert chosen is not None, "a batch watched without an objective has its own"
        return chosen, self.plan(chosen, observed.sides, observed.directions)

    def _is_tiled(self, observed: Observed, objective: Objective) -> bool:
        """Return whether to read a batch tile by tile: a large batch of pairs on the CPU, if one pass is enough."""
        S, pairs = observed.first.S, observed.pairs_at is not None
        if not pairs or S.numel() <= LARGE_ENTRIES or S.device.type != "cpu":
            return False
        return all(needs_one_pass(objective if probe.needs_objective else None, probe) for probe in self.probes)

    def _require_rows_alone(self, objective: Objective) -> None:
        """Raise InputError where rows influence each other, unless their weights come from the whole batch."""
        for probe in self.probes:
            mixes = probe.needs_objective and needs_whole_matrix(objective, probe)
            if mixes and not isinstance(objective, GivenWeights):
                raise InputError(
                    f"the numbers of a query depend on other queries under {name_of_objective(objective)} with "
                    f"{short_spec(probe)}. A batch of more than {MOST_ENTRIES:,} similarities has some rows only. "
                    "Take smaller batches, or watch without it"
                )

    def part(self, observed: Observed, objective: Objective | None) -> BatchPart:
        """Return the results of the probes on the rows of one of several processes.

        Args:
            observed: with rows that have the candidates of all processes.
            objective: of the probes; None: the loss itself.

        Raises:
            InputError: rows influence each other.
        """
        chosen, plan = self._plan_of(observed, objective)
        require_shares(chosen, self.probes)
        return replace(self._part(plan, observed), seen=observed, means=_losses(observed, chosen, objective))

    def _part(self, plan: OneBatch, observed: Observed) -> BatchPart:
        """Return the results of the probes on rows to add up: of a process, of a sample, in tiles."""
        rows = _rows_of(observed, plan)
        if observed.drawn_from is None and self._is_tiled(observed, plan.objective):
            return _in_tiles(plan, rows, observed)
        drawn_from = observed.drawn_from or [None] * len(rows)
        with plain_mode(rows[0].S.device):
            computed = [
                plan.share(index, [of_direction], len(of_direction.S), population)
                for index, (of_direction, population) in enumerate(zip(rows, drawn_from, strict=True))
            ]
            flags, shares = zip(*computed, strict=True)
            candidates = [of_direction.S.shape[1] for of_direction in rows]
            return BatchPart(plan, shares, candidates, torch.stack(flags).all(), observed.offset)

    def sampled_part(self, inputs: BatchRows, objective: Objective, queries: int, step: int) -> BatchPart:
        """Return the results of the probes on a sample of the queries of each direction, a few rows at a time.

        Args:
            inputs: rows of this process.
            objective: of the probes.
            queries: to draw of each direction, at most.
            step: seed of the sample.
        """
        plan, shares, flags = self.plan(objective, inputs.batch.sides, inputs.batch.directions), [], []
        with plain_mode(inputs.rows[0].device):
            for index, rows in enumerate(inputs.rows):
                flags += _finite(rows.queries, rows.candidates)
                drawn = inputs.draw(index, queries, step)
                chunks = torch.split(drawn, max(_ENTRIES // rows.columns, 1))
                parts = (rows.take(chunk, plan.needs_embeddings) for chunk in chunks)
                finite, share = plan.share(index, parts, len(drawn), rows.number)
                shares.append(share)
                flags.append(finite)
            all_finite = torch.stack(flags).all()
        return BatchPart(plan, shares, [rows.columns for rows in inputs.rows], all_finite, inputs.batch.offset)

    def plan(self, objective: Objective, sides: Sides, directions: tuple[Direction, ...] | None = None) -> OneBatch:
        """Return the plan of a kind of batch.

        Args:
            objective: of the weights.
            sides: names of the sides.
            directions: to compute; None: all directions of the sides.

        Raises:
            InputError: a probe does not support the objective.
        """
        chosen = directions or (DIRECTIONS[:1] if sides.is_one_set or sides.has_proxies else DIRECTIONS)
        key = (objective, sides, chosen)
        if key not in self._plans:
            if len(self._plans) >= _KEPT:  # a learnt scale makes another objective of every step
                self._plans.clear()
            self._plans[key] = OneBatch(objective, self.probes, sides, chosen)
        return self._plans[key]


def _rows_of(observed: Observed, plan: OneBatch) -> list[DirectionRows]:
    """Return the rows that the probes need: of both directions, or of the first if S transposed is the second."""
    rows = [of_direction for of_direction in (observed.rows, observed.second) if of_direction is not None]
    return (
        rows
        if observed.has_unit_vectors
        else [_with_unit_vectors(of_direction, plan.needs_embeddings) for of_direction in rows]
    )


def _in_tiles(plan: OneBatch, rows: Sequence[DirectionRows], observed: Observed) -> BatchPart:
    """Return the results of one pass over the tiles of S of pairs, for each direction."""
    from lossscope.engine.ring_rows import RingRows

    matrices = [of_direction.S for of_direction in rows]
    if len(matrices) < len(plan.directions):
        matrices.append(matrices[0].T)
    offset, directions = observed.pairs_at or 0, zip(plan.of_directions, matrices, strict=True)
    blocks = [RingRows(of_plan, S.shape[1], offset) for of_plan, S in directions]
    with plain_mode(matrices[0].device):
        for block, S in zip(blocks, matrices, strict=True):
            block.add(S, 0)
        flags = [*(block.finite for block in blocks), *_finite(rows[0].queries, rows[0].candidates)]
        shares = [block.share() for block in blocks]
        return BatchPart(plan, shares, [S.shape[1] for S in matrices], torch.stack(flags).all(), observed.offset)


def _finite(*embeddings: Tensor | None) -> list[Tensor]:
    """Return () bool for each given side: whether all its numbers are finite."""
    return [x.isfinite().all() for x in embeddings if x is not None]


def _with_unit_vectors(rows: DirectionRows, needed: bool) -> DirectionRows:
    """Return the rows with embeddings of unit length, or without embeddings where no probe reads them."""
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


def _losses(observed: Observed, chosen: Objective, given: Objective | None) -> dict[str, Tensor]:
    """Return () the loss L of the watched code, and L' of its objective, where that has a loss.

    L' is the mean over directions of the mean over all rows; a row without a negative has the loss 0 in both.
    """
    if observed.value is None or given is not None:
        return {}
    if isinstance(chosen, Gradient):
        return {"loss": observed.value}
    rows = observed.of_directions()
    with plain_mode(rows[0].S.device):
        ours = torch.stack([_mean_loss(of_direction.detach(), chosen) for of_direction in rows]).mean()
    return {"loss": observed.value, _OBJECTIVE_LOSS: ours}


def _mean_loss(rows: DirectionRows, objective: Objective) -> Tensor:
    """Return the mean loss of all rows, with 0 for entries that are not finite; NaN where the objective has no loss."""
    entries, finite = rows.finite_entries()
    values = objective(rows.zero_unless(finite, entries).S, rows.mask).values
    return torch.tensor(torch.nan, dtype=torch.float64) if values is None else values.double().sum() / len(rows.S)


def with_loss_gap(statistics: dict[str, float]) -> dict[str, float]:
    """Return statistics with |L − L'| / max(1, |L|) instead of L'; it is near 0 if the objective is the loss."""
    if _OBJECTIVE_LOSS in statistics:
        value, ours = statistics["loss"], statistics.pop(_OBJECTIVE_LOSS)
        statistics["loss_gap"] = abs(ours - value) / max(abs(value), 1.0)
    return statistics
