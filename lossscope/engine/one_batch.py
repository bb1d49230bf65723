"""Run probes on the similarities of one batch: its directions, every statistic, one flat row of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.similarity import Mask
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Axis, Probe, Reducer, Statistic, reduce_column
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import short_spec

from .direction_rows import DirectionRows, zero_unless_finite
from .run_probes import ProbePlan, label_of, plan_of_direction, plan_probes, run_probes


@dataclass(frozen=True)
class OneBatch:
    """Run the probes on one batch under one objective.

    Raises InputError for a probe that needs more than a batch has, or does not support the objective.
    """

    objective: Objective
    probes: tuple[Probe, ...]
    sides: Sides = IMAGE_TEXT  # what the directions are named after
    directions: tuple[Direction, ...] = DIRECTIONS  # that are computed, the first one first

    def __post_init__(self) -> None:
        require_batch_probes(self.probes)
        for probe in self.probes:
            probe.check(self.objective)

    @property
    def needs_embeddings(self) -> bool:
        """Whether a probe reads embeddings too."""
        return any("embeddings" in probe.reads for probe in self.probes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """`i2t/C_neg`, ...; `i2t/PROBE/C_neg` with the probe's spec if two probes have a statistic of one name.

        `both/C_neg` of an objective that has one gradient for both directions; `q2d/C_neg` of other sides.
        """
        return tuple(column for of_direction in self._of_directions for column in of_direction.columns)

    def __call__(
        self,
        S: Tensor,
        mask: Mask,
        images: Tensor | None = None,
        captions: Tensor | None = None,
        second: DirectionRows | None = None,
    ) -> tuple[bool, list[float]]:
        """Return whether all inputs are finite, and a number for each of `columns`.

        Where an embedding or a valid entry of S is not finite, the numbers are those of zeros: nothing raises, and
        the device is waited for only once, for the numbers.

        Args:
            S: similarities of the first side (rows) and the second, such as (images, captions).
            mask: of the direction i2t.
            images: (rows, d) embeddings of the first side, for probes that read them.
            captions: (columns, d) embeddings of the second side, likewise.
            second: rows of the direction t2i, where they are not S transposed.
        """
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(S.device.type, enabled=False):
            rows = [DirectionRows(S, mask, images, captions).detach()]
            if second is not None:
                rows.append(second.detach())
            all_finite, rows = zero_unless_finite(rows)
            if self.objective.needs_embeddings:
                rows = [one.with_embeddings_in_mask() for one in rows]
            if len(rows) < len(self.directions):
                rows.append(rows[0].t())
            finite, *numbers = torch.cat([all_finite.double()[None], *self._values(rows)]).tolist()
        return bool(finite), numbers

    def _values(self, rows: Sequence[DirectionRows]) -> list[Tensor]:
        """(statistics,) of each direction; reduced in one call where both have the same statistics and elements."""
        dense = [_dense_rows(one, direction) for one, direction in zip(rows, self.directions, strict=False)]
        columns = [one.run(of_direction) for one, of_direction in zip(self._of_directions, dense, strict=True)]
        plans = [one.plan for one in self._of_directions]
        one_shape = all(one.S.shape == rows[0].S.shape[::-1] == rows[0].S.shape for one in rows)
        if one_shape and all(plan == plans[0] for plan in plans):
            return list(self._of_directions[0].reduce(columns))
        return [one.reduce([own])[0] for one, own in zip(self._of_directions, columns, strict=True)]

    @cached_property
    def _of_directions(self) -> tuple[_OneDirection, ...]:
        plan = plan_probes([self.objective], self.probes)
        return tuple(
            _OneDirection(plan_of_direction(plan, direction), direction, self.sides) for direction in self.directions
        )


_Columns = Sequence[Mapping[str, Tensor]]  # the columns of each result


@dataclass(frozen=True)
class _OneDirection:
    """The probes that are run on one direction of a batch, and the order of their statistics."""

    plan: ProbePlan
    direction: Direction
    sides: Sides

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of each statistic."""
        triples = [(objective, short_spec(probe), one.name) for _, objective, probe, one in self._statistics]
        number = Counter(name for _, _, name in triples)
        label = self.sides.label
        return tuple(
            f"{label(label_of(objective, self.direction))}/{name if number[name] == 1 else f'{probe}/{name}'}"
            for objective, probe, name in triples
        )

    def run(self, rows: DenseRows) -> _Columns:
        """Return the columns of each probe."""
        return [result.columns() for result in run_probes(rows, self.plan)]

    def reduce(self, directions: Sequence[_Columns]) -> Tensor:
        """(directions, statistics); all directions have this plan and the same number of elements."""
        if not self._statistics:
            return torch.zeros(len(directions), 0, dtype=torch.float64)
        reduced = []
        for (reducer, axis), members in self._groups.items():
            columns = {
                "all": torch.cat(
                    [_stack([results[result][name] for _, result, name in members]) for results in directions]
                )
            }
            if axis == "query":
                columns["skipped"] = torch.cat([results[members[0][1]]["skipped"] for results in directions])
            reduced.append(reduce_column(Statistic("all", "all", reducer, ""), columns, len(directions)))
        return torch.cat(reduced, 1)[:, self._order]

    @cached_property
    def _statistics(self) -> list[tuple[int, Objective | None, Probe, Statistic]]:
        """Every statistic that is one number, with the index of its probe in the plan."""
        return [
            (index, objective, probe, statistic)
            for index, (objective, probe) in enumerate(self.plan)
            for statistic in probe.statistics(objective)
            if statistic.reducer != "curve"
        ]

    @cached_property
    def _groups(self) -> dict[tuple[Reducer, Axis], list[tuple[int, int, str]]]:
        """Statistics that are reduced in one call: (index in `_statistics`, index in the plan, column) of each."""
        groups: dict[tuple[Reducer, Axis], list[tuple[int, int, str]]] = {}
        for index, (result, _, probe, statistic) in enumerate(self._statistics):
            member = (index, result, statistic.column)
            groups.setdefault((statistic.reducer, probe.axis), []).append(member)
        return groups

    @cached_property
    def _order(self) -> list[int]:
        """Index in the order of `_groups` of each of `_statistics`."""
        grouped = [index for members in self._groups.values() for index, _, _ in members]
        return sorted(range(len(grouped)), key=grouped.__getitem__)


def require_batch_probes(probes: Sequence[Probe]) -> None:
    """Raise InputError for a probe that needs gradients of layers, which a batch in training does not have."""
    for probe in probes:
        if "gradients" in probe.reads:
            raise InputError(
                f"probes of a batch must do without gradients of layers; got {short_spec(probe)}, which needs "
                "them. Leave it out here, and probe a checkpoint"
            )


def _stack(columns: Sequence[Tensor]) -> Tensor:
    """(elements, columns), in float64 if their types differ, so that no digits are lost."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [column.double() for column in columns]
    return torch.stack(list(columns), -1)


def _dense_rows(rows: DirectionRows, direction: Direction) -> DenseRows:
    shape = _shape(*rows.S.shape, direction)
    candidates = None if rows.candidates is None else rows.candidates[None]
    return DenseRows(shape, rows.S, rows.mask, rows.queries, candidates)


@lru_cache(maxsize=16)
def _shape(queries: int, candidates: int, direction: Direction) -> BatchShape:
    return BatchShape(1, direction, torch.arange(queries), torch.arange(candidates)[None])
