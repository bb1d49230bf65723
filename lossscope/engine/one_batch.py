"""Run probes on the similarities of one batch: both directions, every statistic, one flat row of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Axis, Probe, Reducer, Statistic, reduce_column
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import short_spec

from .run_probes import ProbePlan, label_of, plan_of_direction, plan_probes, run_probes

HALF_TYPES = (torch.float16, torch.bfloat16)  # converted to float32 before anything is computed


@dataclass(frozen=True)
class OneBatch:
    """Run the probes on one batch under one objective.

    Raises InputError for a probe that needs more than a batch has, or does not support the objective.
    """

    objective: Objective
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        for probe in self.probes:
            if "gradients" in probe.reads:
                raise InputError(
                    f"probes of a batch must do without gradients of layers; got {short_spec(probe)}, which needs "
                    "them. Leave it out here, and probe a checkpoint"
                )
            probe.check(self.objective)

    @property
    def needs_embeddings(self) -> bool:
        """Whether a probe reads embeddings too."""
        return any("embeddings" in probe.reads for probe in self.probes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """`i2t/C_neg`, ...; `i2t/PROBE/C_neg` with the probe's spec if two probes have a statistic of one name.

        `both/C_neg` of an objective that has one gradient for both directions.
        """
        return tuple(column for of_direction in self._of_directions for column in of_direction.columns)

    def __call__(
        self, S: Tensor, mask: Mask, images: Tensor | None = None, captions: Tensor | None = None
    ) -> tuple[bool, list[float]]:
        """Return whether all inputs are finite, and a number for each of `columns`.

        Where an embedding or a valid entry of S is not finite, the numbers are those of zeros: nothing raises, and
        the device is waited for only once, for the numbers.

        Args:
            S: (images, captions) similarities.
            mask: of the direction i2t.
            images: (images, d) embeddings, for probes that read them.
            captions: (captions, d) embeddings, likewise.
        """
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(S.device.type, enabled=False):
            S = S.detach().float() if S.dtype in HALF_TYPES else S.detach()
            finite_entries = S.isfinite()
            all_finite = (finite_entries if mask.all_valid else finite_entries | ~mask.valid).all()
            for embeddings in (images, captions):
                all_finite = all_finite if embeddings is None else all_finite & embeddings.isfinite().all()
            S = S.where(finite_entries & all_finite, 0.0)
            images, captions = (None if x is None else _zero_unless(all_finite, x) for x in (images, captions))
            if self.objective.needs_embeddings and images is not None and captions is not None:
                mask = replace(mask, info={**mask.info, "queries": images, "candidates": captions})
            rows = _rows(S, mask, images, captions), _rows(S.T.contiguous(), mask.t(), captions, images)
            values = self._values(rows, one_reduction=len(S) == S.shape[1])
            finite, *numbers = torch.cat([all_finite.double()[None], *values]).tolist()
        return bool(finite), numbers

    def _values(self, rows: Sequence[DenseRows], one_reduction: bool) -> list[Tensor]:
        """(statistics,) of each direction; reduced in one call where both have the same statistics and elements."""
        i2t, t2i = self._of_directions
        columns = [one.run(of_direction) for one, of_direction in zip(self._of_directions, rows, strict=True)]
        if one_reduction and i2t.plan == t2i.plan:
            return list(i2t.reduce(columns))
        return [one.reduce([own])[0] for one, own in zip(self._of_directions, columns, strict=True)]

    @cached_property
    def _of_directions(self) -> tuple[_OneDirection, _OneDirection]:
        plan = plan_probes([self.objective], self.probes)
        i2t, t2i = (_OneDirection(plan_of_direction(plan, direction), direction) for direction in DIRECTIONS)
        return i2t, t2i


_Columns = Sequence[Mapping[str, Tensor]]  # the columns of each result


@dataclass(frozen=True)
class _OneDirection:
    """The probes that are run on one direction of a batch, and the order of their statistics."""

    plan: ProbePlan
    direction: Direction

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of each statistic."""
        triples = [(objective, short_spec(probe), one.name) for _, objective, probe, one in self._statistics]
        number = Counter(name for _, _, name in triples)
        return tuple(
            f"{label_of(objective, self.direction)}/{name if number[name] == 1 else f'{probe}/{name}'}"
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


def i2t_mask(S: Tensor, mask: Mask | None) -> Mask:
    """Return the mask on the device of S, or that of pairs if it is None.

    Raises InputError unless S is (images, captions) and the mask is of that shape and of the direction i2t.
    """
    if S.ndim != 2 or not S.is_floating_point():
        raise InputError(f"S must be (images, captions) of floating point; got {tuple(S.shape)} of {S.dtype}")
    if mask is None:
        if len(S) != S.shape[1] or len(S) < 2:
            raise InputError(f"S of pairs must be (b, b), b at least 2; got {tuple(S.shape)}. Give the mask of others")
        return pair_mask(torch.arange(len(S), device=S.device))
    if not isinstance(mask, Mask):
        raise InputError(
            f"mask must be a lossscope.Mask; got {type(mask).__name__}. Write lossscope.Mask(match=..., valid=...), "
            "both (images, captions) of bool; embeddings are given by name, images=..., captions=..."
        )
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if mask.direction != "i2t":
        raise InputError(f"mask must be i2t, as S has images as rows; got {mask.direction}. Give S.T and mask.t()")
    return mask.to(S.device)


def _zero_unless(all_finite: Tensor, x: Tensor) -> Tensor:
    """Return the embeddings, with zeros where they or any other input are not finite."""
    return x.where(x.isfinite() & all_finite, 0.0)


def _stack(columns: Sequence[Tensor]) -> Tensor:
    """(elements, columns), in float64 if their types differ, so that no digits are lost."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [column.double() for column in columns]
    return torch.stack(list(columns), -1)


def _rows(S: Tensor, mask: Mask, queries: Tensor | None, candidates: Tensor | None) -> DenseRows:
    shape = _shape(*S.shape, mask.direction)
    return DenseRows(shape, S, mask, queries, None if candidates is None else candidates[None])


@lru_cache(maxsize=16)
def _shape(queries: int, candidates: int, direction: Direction) -> BatchShape:
    return BatchShape(1, direction, torch.arange(queries), torch.arange(candidates)[None])
