"""The results of one probe, objective and direction: how much queries and candidates move their statistics."""

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

SampledRows = tuple[DenseRows, Tensor]  # each a batch of one query, and the places of their queries (r,)
Panels = Callable[[], Iterator[SampledRows]]
_IDS = ("query_ids", "candidate_ids")
CHUNK = 1 << 19  # entries of S whose effects are computed at a time
_LONGEST = 256  # candidates of a row that are left out one by one, which costs as many rows
_ALIKE = 0.02  # relative difference of numbers of a query in its batch and alone, which are rounded otherwise
_ZERO = 1e-9  # what a number of a query is above, if it is not 0


@dataclass(frozen=True)
class RowEffects:
    """How much each candidate of r rows moves each statistic, less the mean of the row."""

    places: Tensor  # (r,) of the queries among all of the result
    units: Rows  # (r, c) of the candidates
    are_shared: bool  # whether all rows have the same candidates
    of_statistics: Mapping[str, Floats]  # statistic -> (r, c), times the weights of queries; absent: no effect

    def __getitem__(self, rows: slice) -> RowEffects:
        """Return those of some rows."""
        part = {name: effects[rows] for name, effects in self.of_statistics.items()}
        return RowEffects(self.places[rows], self.units[rows], self.are_shared, part)

    @cached_property
    def _of_one_unit(self) -> tuple[Rows, Rows]:
        """Return the entries whose row has others of their unit, unit after unit, and where each unit begins."""
        r, c = self.units.shape
        order = np.argsort(self.units, axis=1, kind="stable")
        ordered = np.take_along_axis(self.units, order, axis=1)
        same = np.zeros((r, c + 1), bool)
        same[:, 1:-1] = ordered[:, 1:] == ordered[:, :-1]
        shared = same[:, :-1] | same[:, 1:]  # with the one before, or the one after
        entries = (order + np.arange(r)[:, None] * c)[shared]
        return entries, np.flatnonzero(~same[:, :-1][shared])

    def overlap(self, effects: Floats, share: float) -> float:
        """Σ (Σ effects of the candidates of one unit / share)² over rows and units.

        Args:
            effects: (r, c).
            share: of the queries that are rows.
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
            share: of the queries that are rows.
        """
        if self.are_shared:
            by_candidate, units = effects.sum(0), self.units[0]
        else:
            by_candidate, units = effects.reshape(-1), self.units.reshape(-1)
        of_units: Floats = np.bincount(units, weights=by_candidate / share, minlength=number).astype(np.float64)
        return of_units


@dataclass
class ResultGroup:
    """The results of one probe, objective and direction, in the order of the sweep, and what moves their statistics."""

    query_units: Callable[[BatchShape], tuple[Rows, Rows]]  # units of queries and of candidates, shaped as their ids
    complete: Callable[[DenseRows], DenseRows]  # adds embeddings and keys to sampled rows
    results: list[ProbeResult] = field(default_factory=list)
    full: list[bool] = field(default_factory=list)  # whether the batches of a result are full
    rows: list[SampledRows] = field(default_factory=list)
    panels: list[tuple[Panels, int]] = field(default_factory=list)  # of large batches, and the queries before them
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
        """(n,) of all queries."""
        return np.concatenate([self.query_units(result.shape)[0] for result in self.results])

    def row_effects(self) -> Iterator[RowEffects | None]:
        """Yield the effects of the candidates of sampled rows, a chunk at a time; None, and no more, without them."""
        for rows, places in self._chunks():
            effects = self._effects(rows, places)
            yield effects
            if effects is None:
                return

    def _chunks(self) -> Iterator[SampledRows]:
        """Yield all sampled rows, a chunk at a time, and the places of their queries."""
        waiting: list[SampledRows] = []
        entries = 0
        for rows, places in self.rows:
            if waiting and (entries + rows.S.numel() > CHUNK or rows.S.shape[1] != waiting[0][0].S.shape[1]):
                yield _joined(waiting)
                waiting, entries = [], 0
            waiting.append((rows, places))
            entries += rows.S.numel()
        if waiting:
            yield _joined(waiting)
        for panels, before in self.panels:
            for rows, places in panels():
                yield rows, places + before

    def _effects(self, rows: DenseRows, places: Tensor) -> RowEffects | None:
        """Return the effects of the candidates of some rows; None where none can be had.

        Args:
            rows: r rows, each a batch of its own.
            places: (r,) of their queries.
        """
        effects = self._on_columns(rows, places)
        if effects is None:
            return None
        own, units = self.query_units(rows.shape)
        negatives = rows.mask.negatives.cpu()
        different = negatives & torch.from_numpy(own[:, None] != units)
        number = negatives.sum(1, keepdim=True).clamp(min=1)
        of_statistics: dict[str, Floats] = {}
        for name, (one, column) in self.linear.items():
            if column not in effects or not one.moves:
                continue
            effect = effects[column].cpu()
            change = _scaled(_without_nan(one, effect, places), one.on_effect, places)
            if not isinstance(one.on_any, float) or one.on_any:
                on_any = self._on_any(column, effect, effects.get(POSITIVE + column), places)
                change = change + _scaled(on_any, one.on_any, places)
            if one.on_above:
                change = change + one.on_above * self._on_above(column, effect, one.threshold, places)
            if one.weights is not None:
                change = change * one.weights[places][:, None]
            change = change * negatives  # less the mean of the row; 0 where a candidate is of the query's unit
            centred = (change - change.sum(1, keepdim=True) / number).mul_(different)
            of_statistics[name] = np.asarray(centred.numpy(), dtype=np.float64)
        return RowEffects(places, units, rows.shape.candidate_ids.stride(0) == 0, of_statistics)

    def _on_columns(self, rows: DenseRows, places: Tensor) -> Effects | None:
        """Return the effect of each candidate on the columns of the probe, (r, c) each; None where none can be had.

        A probe states its effects, or they are measured by leaving candidates out one by one, which takes an objective
        whose rows do not influence each other.
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
        return self._measured(self.complete(rows) if probe.reads & {"embeddings", "keys"} else rows, places)

    def _measured(self, rows: DenseRows, places: Tensor) -> Effects | None:
        """Return y − (y without the candidate); None where y of a row alone is another than in its batch."""
        probe, objective = self.results[0].probe, self.results[0].objective
        alone = _columns_of(probe, objective, rows)
        columns = {name: self.columns[name] for name in alone if name in self.columns}
        for name, column in columns.items():
            now, before = alone[name].double(), column.double()[places.to(column.device)].to(rows.S.device)
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

    def _on_any(self, column: str, effect: Tensor, stated: Tensor | None, places: Tensor) -> Tensor:
        """(r, c) effect on whether the number of a query is above 0: as stated, or from that on the number."""
        if stated is not None:
            return stated.cpu()
        y = self.columns[column].cpu()[places][:, None]
        return (y > 0).to(effect.dtype) - (y - effect.nan_to_num(0) > _ZERO).to(effect.dtype)

    def _on_above(self, column: str, effect: Tensor, threshold: float, places: Tensor) -> Tensor:
        """(r, c) effect on whether the number of a query is above a threshold."""
        y = self.columns[column].cpu()[places][:, None].double()
        return (y > threshold).to(effect.dtype) - (y - effect.nan_to_num(0) > threshold).to(effect.dtype)

    def by_unit(self, x: Tensor | None, number: int) -> Floats:
        """(number,) Σ of a number of queries over those of each unit; None: how many there are."""
        return np.bincount(self.units, None if x is None else x.numpy(), number).astype(np.float64)


def _without_nan(one: LinearStatistic, effect: Tensor, places: Tensor) -> Tensor:
    """Return the effects; of a query that would have no number, what leaves the mean, or 0."""
    if not bool(effect.isnan().any()):
        return effect
    leaves = 0.0 if one.leaves is None else one.leaves[places][:, None].to(effect.dtype)
    return effect.where(~effect.isnan(), leaves)


def _scaled(effect: Tensor, scale: Scale, places: Tensor) -> Tensor:
    if isinstance(scale, float):
        return effect if scale == 1 else effect * scale
    return effect * scale[places][:, None].to(effect.dtype)


def _columns_of(probe: Probe, objective: Objective | None, rows: DenseRows) -> dict[str, Tensor]:
    columns = probe.finish(probe.tile(View(rows, objective)))
    return {name: column.where(~rows.skipped.to(column.device), torch.nan) if column.is_floating_point() else column
            for name, column in columns.items() if column.ndim == 1}  # fmt: skip


def _joined(parts: Sequence[SampledRows]) -> SampledRows:
    """Concatenate rows of one width, each a batch of its own, and the places of their queries."""
    places = torch.cat([places for _, places in parts])
    if len(parts) == 1:
        return parts[0][0], places
    shapes, similarities, masks = zip(*((rows.shape, rows.S, rows.mask) for rows, _ in parts), strict=True)
    direction = shapes[0].direction
    query_ids, candidate_ids = (torch.cat([getattr(shape, name) for shape in shapes]) for name in _IDS)
    info = {name: torch.cat([mask.info[name] for mask in masks]) for name in masks[0].info}
    match, valid = (torch.cat([getattr(mask, name) for mask in masks]) for name in ("match", "valid"))
    shape = BatchShape(len(places), direction, query_ids, candidate_ids, has_all_queries=False)
    return DenseRows(shape, torch.cat(similarities), Mask(match, valid, info, masks[0].direction)), places
