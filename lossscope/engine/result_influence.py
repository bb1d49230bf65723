"""The influence of queries and candidates on the statistics of one probe, objective and direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.types import Rows
from lossscope.probes.base import ANY
from lossscope.probes.views.view import BatchShape, DenseRows

from .candidate_effects import candidate_effects
from .linear_statistics import LinearStatistic, Scale
from .run_probes import ProbeResult

_ZERO = 1e-9  # what a number of a query is above, if it is not 0
Floats = npt.NDArray[np.float64]


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


@dataclass(frozen=True)
class ResultInfluence:
    """The statistics of a result as means over queries, and how much each candidate moves them."""

    result: ProbeResult  # or the first of several
    linear: Mapping[str, tuple[LinearStatistic, str]]  # statistic -> its means over queries, and its column
    columns: Mapping[str, Tensor]
    units: Rows  # (n,) of all queries
    query_units: Callable[[BatchShape], tuple[Rows, Rows]]  # units of queries and of candidates, shaped as their ids
    complete: Callable[[DenseRows], DenseRows]  # adds embeddings and keys to sampled rows

    def effects(self, rows: DenseRows, places: Tensor) -> RowEffects | None:
        """Return the effects of the candidates of some rows; None where none can be had.

        Args:
            rows: r rows, each a batch of its own.
            places: (r,) of their queries.
        """
        effects = candidate_effects(self.result.probe, self.result.objective, rows, self.columns, places, self.complete)
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
            if not isinstance(one.on_any, float):
                on_any = self._on_any(column, effect, effects.get(ANY + column), places)
                change = change + _scaled(on_any, one.on_any, places)
            elif one.on_any:
                change = change + one.on_any * self._on_any(column, effect, effects.get(ANY + column), places)
            if one.on_above:
                change = change + one.on_above * self._on_above(column, effect, one.threshold, places)
            if one.weights is not None:
                change = change * one.weights[places][:, None]
            change = change * negatives  # less the mean of the row; 0 where a candidate is of the query's unit
            centred = (change - change.sum(1, keepdim=True) / number).mul_(different)
            of_statistics[name] = np.asarray(centred.numpy(), dtype=np.float64)
        return RowEffects(places, units, rows.shape.candidate_ids.stride(0) == 0, of_statistics)

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
