"""How much do queries and candidates change the statistics of one probe, objective and direction?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lossscope.core.intervals import Floats
from lossscope.core.similarity import Mask
from lossscope.core.types import Rows
from lossscope.objectives.base import Objective
from lossscope.probes.base import POSITIVE, Effects, HasEffects, Probe
from lossscope.probes.views.view import BatchShape, DenseRows, View

from .linear_statistics import LinearStatistic, QueryNumbers, Scale
from .reducers import linear_statistic
from .run_probes import ProbeResult

SampledRows = tuple[DenseRows, Tensor]  # rows, each a batch of one query, and the indices of their queries (r,)
Panels = Callable[[], Iterator[SampledRows]]
_IDS = ("query_ids", "candidate_ids")
CHUNK = 1 << 19  # entries of S in a chunk of effects
_LONGEST = 256  # longest row whose candidates are left out one by one, which takes as many rows
_ALIKE = 0.02  # rounding allowed between the number of a query in its batch and alone, relative
_ZERO = 1e-9  # a smaller number of a query counts as 0


@dataclass(frozen=True)
class RowEffects:
    """How much each candidate of r rows changes each statistic, minus the mean of the row."""

    query_index: Tensor  # (r,) indices of the queries among all queries of the group
    units: Rows  # (r, c) of the candidates
    are_shared: bool  # whether all rows have the same candidates
    of_statistics: Mapping[str, Floats]  # statistic -> (r, c), times the weights of queries; no key means no effect

    def __getitem__(self, rows: slice) -> RowEffects:
        """Return the effects of a slice of rows."""
        part = {name: effects[rows] for name, effects in self.of_statistics.items()}
        return RowEffects(self.query_index[rows], self.units[rows], self.are_shared, part)

    @cached_property
    def _of_one_unit(self) -> tuple[Rows, Rows]:
        """Return the entries that share their unit with others of the row, unit by unit, and the start of each unit."""
        r, c = self.units.shape
        order = np.argsort(self.units, axis=1, kind="stable")
        ordered = np.take_along_axis(self.units, order, axis=1)
        same = np.zeros((r, c + 1), bool)
        same[:, 1:-1] = ordered[:, 1:] == ordered[:, :-1]
        shared = same[:, :-1] | same[:, 1:]  # same unit as the entry before, or as the entry after
        entries = (order + np.arange(r)[:, None] * c)[shared]
        return entries, np.flatnonzero(~same[:, :-1][shared])

    def overlap(self, effects: Floats, share: float) -> float:
        """Σ (Σ effects of the candidates of one unit / share)² over rows and units.

        Args:
            effects: (r, c).
            share: share of the queries that are sampled.
        """
        entries, starts = self._of_one_unit
        square = float(np.square(effects).sum())
        if len(entries):
            several = effects.reshape(-1)[entries]
            square += float(np.square(np.add.reduceat(several, starts)).sum() - np.square(several).sum())
        return square / share**2

    def by_unit(self, effects: Floats, number: int, share: float) -> Floats:
        """(number,) Σ effect / share of the candidates of each unit.

        Args:
            effects: (r, c).
            number: of units.
            share: share of the queries that are sampled.
        """
        if self.are_shared:
            by_candidate, units = effects.sum(0), self.units[0]
        else:
            by_candidate, units = effects.reshape(-1), self.units.reshape(-1)
        of_units: Floats = np.bincount(units, weights=by_candidate / share, minlength=number).astype(np.float64)
        return of_units


@dataclass
class ResultGroup:
    """The results of one probe, objective and direction in the order of the sweep, and the effects of candidates."""

    query_units: Callable[[BatchShape], tuple[Rows, Rows]]  # units of queries and of candidates, in the shape of ids
    complete: Callable[[DenseRows], DenseRows]  # adds embeddings and keys to sampled rows
    results: list[ProbeResult] = field(default_factory=list)
    full: list[bool] = field(default_factory=list)  # whether the batches of a result are full
    rows: list[SampledRows] = field(default_factory=list)
    panels: list[tuple[Panels, int]] = field(default_factory=list)  # of large batches, and the number of queries before
    queries: int = 0  # so far

    @cached_property
    def columns(self) -> dict[str, Tensor]:
        """The columns of all results, (n,) each."""
        parts = [result.of_queries for result in self.results]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    @cached_property
    def linear(self) -> dict[str, tuple[LinearStatistic, str]]:
        """Each statistic that is a smooth function of means -> its means over queries, and its column."""
        sizes = [(result.shape.batches, result.shape.queries) for result in self.results]
        full = None
        if not all(self.full):
            full = torch.repeat_interleave(torch.tensor(self.full), torch.tensor([k * q for k, q in sizes]))
        numbers, means = QueryNumbers(self.columns, sizes, full), dict[str, tuple[LinearStatistic, str]]()
        for statistic in self.results[0].statistics():
            linear = linear_statistic(numbers, statistic) if statistic.column in self.columns else None
            if linear is not None:
                means[statistic.name] = linear, statistic.column
        return means

    @cached_property
    def units(self) -> Rows:
        """(n,) unit of each query."""
        return np.concatenate([self.query_units(result.shape)[0] for result in self.results])

    def row_effects(self) -> Iterator[RowEffects | None]:
        """Yield the effects of the candidates of sampled rows, a chunk at a time; a single None if they are unknown."""
        for rows, query_index in self._chunks():
            effects = self._effects(rows, query_index)
            yield effects
            if effects is None:
                return

    def _chunks(self) -> Iterator[SampledRows]:
        """Yield all sampled rows, a chunk at a time, and the indices of their queries."""
        waiting: list[SampledRows] = []
        entries = 0
        for rows, query_index in self.rows:
            if waiting and (entries + rows.S.numel() > CHUNK or rows.S.shape[1] != waiting[0][0].S.shape[1]):
                yield _join(waiting)
                waiting, entries = [], 0
            waiting.append((rows, query_index))
            entries += rows.S.numel()
        if waiting:
            yield _join(waiting)
        for panels, before in self.panels:
            for rows, query_index in panels():
                yield rows, query_index + before

    def _effects(self, rows: DenseRows, query_index: Tensor) -> RowEffects | None:
        """Return the effects of the candidates of the rows; None if they are unknown.

        Args:
            rows: r rows, each a batch of its own.
            query_index: (r,) indices of their queries.
        """
        effects = self._on_columns(rows, query_index)
        if effects is None:
            return None
        query_units, units = self.query_units(rows.shape)
        negatives = rows.mask.negatives.cpu()
        different = negatives & torch.from_numpy(query_units[:, None] != units)
        number = negatives.sum(1, keepdim=True).clamp(min=1)
        of_statistics: dict[str, Floats] = {}
        for name, (linear, column) in self.linear.items():
            if column not in effects or not linear.moves:
                continue
            effect = effects[column].cpu()
            change = _scale(_without_nan(linear, effect, query_index), linear.on_effect, query_index)
            if not isinstance(linear.on_positive, float) or linear.on_positive:
                on_positive = self._on_positive(column, effect, effects.get(POSITIVE + column), query_index)
                change = change + _scale(on_positive, linear.on_positive, query_index)
            if linear.on_above:
                change = change + linear.on_above * self._on_above(column, effect, linear.threshold, query_index)
            if linear.weights is not None:
                change = change * linear.weights[query_index][:, None]
            change = change * negatives  # minus the mean of the row; 0 if candidate and query have the same unit
            centred = (change - change.sum(1, keepdim=True) / number).mul_(different)
            of_statistics[name] = np.asarray(centred.numpy(), dtype=np.float64)
        return RowEffects(query_index, units, rows.shape.candidate_ids.stride(0) == 0, of_statistics)

    def _on_columns(self, rows: DenseRows, query_index: Tensor) -> Effects | None:
        """Return the effect of each candidate on the columns of the probe, (r, c) each; None if they are unknown.

        A probe states its effects, or candidates are left out one by one. The latter takes an objective whose rows do
        not influence each other.
        """
        probe, objective = self.results[0].probe, self.results[0].objective
        if isinstance(probe, HasEffects):
            effects = probe.effects(View(rows, objective))
            if effects is not None:
                return effects
        if objective is not None and (
            objective.coupled or objective.traits.square or objective.traits.needs_embeddings
        ):
            return None
        if rows.S.shape[1] > _LONGEST or "gradients" in probe.reads:
            return None
        return self._leave_one_out(self.complete(rows) if probe.reads & {"embeddings", "keys"} else rows, query_index)

    def _leave_one_out(self, rows: DenseRows, query_index: Tensor) -> Effects | None:
        """Return y − (y without the candidate); None if y of a row alone differs from y in its batch."""
        probe, objective = self.results[0].probe, self.results[0].objective
        alone = _columns_of(probe, objective, rows)
        columns = {name: self.columns[name] for name in alone if name in self.columns}
        for name, column in columns.items():
            now, before = alone[name].double(), column.double()[query_index.to(column.device)].to(rows.S.device)
            now, before = now[~rows.skipped], before[~rows.skipped]
            scale = float(before[~before.isnan()].abs().mean()) if bool((~before.isnan()).any()) else 0.0
            if not torch.allclose(now, before, rtol=_ALIKE, atol=_ALIKE * scale, equal_nan=True):
                return None
        effects = {name: torch.zeros(rows.S.shape, dtype=torch.float64, device=rows.S.device) for name in columns}
        negatives = rows.mask.negatives.nonzero()
        if not len(negatives):
            return effects
        for queries, candidates in (pairs.T for pairs in torch.split(negatives, max(CHUNK // rows.S.shape[1], 1))):
            without = _columns_of(probe, objective, rows.without(queries, candidates))
            for name in columns:
                effects[name][queries, candidates] = alone[name][queries].double() - without[name].double()
        return effects

    def _on_positive(self, column: str, effect: Tensor, stated: Tensor | None, query_index: Tensor) -> Tensor:
        """(r, c) effect on whether the number of a query is above 0: as stated, or from the effect on the number."""
        if stated is not None:
            return stated.cpu()
        y = self.columns[column].cpu()[query_index][:, None]
        return (y > 0).to(effect.dtype) - (y - effect.nan_to_num(0) > _ZERO).to(effect.dtype)

    def _on_above(self, column: str, effect: Tensor, threshold: float, query_index: Tensor) -> Tensor:
        """(r, c) effect on whether the number of a query is above a threshold."""
        y = self.columns[column].cpu()[query_index][:, None].double()
        return (y > threshold).to(effect.dtype) - (y - effect.nan_to_num(0) > threshold).to(effect.dtype)

    def by_unit(self, x: Tensor | None, number: int) -> Floats:
        """(number,) Σ x over the queries of each unit; x None: the number of queries."""
        return np.bincount(self.units, None if x is None else x.numpy(), number).astype(np.float64)


def _without_nan(linear: LinearStatistic, effect: Tensor, query_index: Tensor) -> Tensor:
    """Return the effects; if the number of a query becomes undefined, the effect is `leaves`, or 0."""
    if not bool(effect.isnan().any()):
        return effect
    leaves = 0.0 if linear.leaves is None else linear.leaves[query_index][:, None].to(effect.dtype)
    return effect.where(~effect.isnan(), leaves)


def _scale(effect: Tensor, scale: Scale, query_index: Tensor) -> Tensor:
    if isinstance(scale, float):
        return effect if scale == 1 else effect * scale
    return effect * scale[query_index][:, None].to(effect.dtype)


def _columns_of(probe: Probe, objective: Objective | None, rows: DenseRows) -> dict[str, Tensor]:
    columns = probe.finish(probe.tile(View(rows, objective)))
    return {name: column.where(~rows.skipped.to(column.device), torch.nan) if column.is_floating_point() else column
            for name, column in columns.items() if column.ndim == 1}  # fmt: skip


def _join(parts: Sequence[SampledRows]) -> SampledRows:
    """Concatenate rows of the same width, each a batch of its own, and the indices of their queries."""
    query_index = torch.cat([query_index for _, query_index in parts])
    if len(parts) == 1:
        return parts[0][0], query_index
    shapes, similarities, masks = zip(*((rows.shape, rows.S, rows.mask) for rows, _ in parts), strict=True)
    direction = shapes[0].direction
    query_ids, candidate_ids = (torch.cat([getattr(shape, name) for shape in shapes]) for name in _IDS)
    info = {name: torch.cat([mask.info[name] for mask in masks]) for name in masks[0].info}
    match, valid = (torch.cat([getattr(mask, name) for mask in masks]) for name in ("match", "valid"))
    shape = BatchShape(len(query_index), direction, query_ids, candidate_ids, has_all_queries=False)
    return DenseRows(shape, torch.cat(similarities), Mask(match, valid, info, masks[0].direction)), query_index
