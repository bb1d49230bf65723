"""Weights of a smooth rank: how steeply each negative's step function stands at each positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .base import InOneTile, RowCounts, TileAccumulator, zero_skipped
from .buffers import Buffers
from .kept_entries import KeptEntries
from .rows import QueryPositives, WholeRows

_UP = 2.0**54  # on D before it is squared, so that the squares of e⁻⁸⁰ are still numbers
_SLACK = 1e-5  # how much wider a window is while sums are incomplete, in similarity


@dataclass(frozen=True)
class SmoothRankRule:
    """w_ij = G_ij (1 − G_ij) / R_i², G_ij = sigmoid((s_j − s_i) / tau), R_i = 1 + Σ_{j≠i} G_ij, i a positive.

    j is any other candidate. w_ij > eps where |s_j − s_i| < tau log((1 − g) / g), g (1 − g) = eps R_i²: a window
    around each positive, which shrinks as R_i grows.
    """

    tau: float
    compares: ClassVar[bool] = False

    def side(self, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool) -> TileAccumulator:
        """Sums of one direction."""
        return _Windows(self, known, eps, space, collect)

    def of(self, whole: WholeRows) -> RowCounts:
        """Sums of the rows as one tile."""
        return InOneTile(self, whole)


class _Windows(TileAccumulator):
    """sums: (n, p, 3) Σ G, Σ D and Σ (up D)², D = G (1 − G), of each positive, at first over the other positives."""

    def __init__(
        self, form: SmoothRankRule, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool
    ) -> None:
        self.form, self.known, self.eps, self.space = form, known, tuple(dict.fromkeys(eps)), space
        self.own = known.positives
        n, p = self.own.shape
        self.present = self.own > -torch.inf
        self.far = self.own.where(self.present, torch.inf)  # from there every cell is infinitely far below
        self.sums = torch.zeros(n, p, 3, dtype=torch.float64, device=self.own.device)
        self.begun = self._among()
        self.sums += self.begun
        self.cells = [KeptEntries(n) for _ in range(p)] if collect else None
        self.found = {e: torch.zeros(n, p, 2, dtype=torch.float64, device=self.own.device) for e in self.eps}

    def _among(self) -> Tensor:
        """(n, p, 3) the sums over the other positives."""
        D, gap = self._steps(), self._gaps()
        squares = (D * _UP).square().sum(2)
        return torch.stack([gap.sigmoid().where(self._others, 0.0).sum(2), D.sum(2), squares], 2)

    @property
    def _others(self) -> Tensor:
        """(n, p, p) bool: pairs of two positives."""
        p = self.own.shape[1]
        apart = ~torch.eye(p, dtype=torch.bool, device=self.own.device)
        return apart & self.present[:, :, None] & self.present[:, None, :]

    def _gaps(self) -> Tensor:
        gap = (self.own[:, None, :] - self.own[:, :, None]) / self.form.tau
        return gap.where(self._others, -torch.inf).double()

    def _steps(self) -> Tensor:
        G = self._gaps().sigmoid()
        return G * (1 - G)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        for i in range(self.own.shape[1]):
            X = torch.sub(tile, self.far[rows, i].unsqueeze(dim), out=self.space.like(tile))
            if self.cells is not None and not self.cells[i].full:
                width = self._window(min(self.eps), rows)[:, i] + _SLACK
                near = torch.abs(X, out=self.space.like(tile, "second")).neg_()
                chosen = self.space.above(near, -width.to(X.dtype).unsqueeze(dim))
                self.cells[i].take(tile, chosen, rows, dim, partial(self._near, i))
            G = X.div_(self.form.tau).sigmoid_()
            self.sums[rows, i, 0] += self.space.total(G, dim)
            D = torch.addcmul(G, G, G, value=-1, out=self.space.like(tile, "second"))
            self.sums[rows, i, 1] += self.space.total(D, dim)
            self.sums[rows, i, 2] += self.space.total(D.mul_(_UP).square_(), dim)

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = self.space.like(tile, "third")
        for i in range(self.own.shape[1]):
            D = torch.sub(tile, self.far[rows, i].unsqueeze(dim), out=self.space.like(tile))
            D.div_(self.form.tau).sigmoid_()
            D.addcmul_(D, D, value=-1)
            for eps, found in self.found.items():
                low, high = (edge[rows, i].unsqueeze(dim) for edge in self._edges(eps))
                inside = torch.gt(tile, low, out=truth)
                inside.mul_(torch.lt(tile, high, out=self.space.like(tile, "second")))
                found[rows, i, 0] += self.space.total(inside, dim)
                found[rows, i, 1] += self.space.total(inside.mul_(D), dim)

    @property
    def again(self) -> bool:
        return self.cells is None or any(cells.full for cells in self.cells)

    def counts(self, eps: float) -> Counts:
        found = (self.found[eps] if self.again else self._of_cells(eps)) + self._of_positives(eps)
        R = 1 + self.sums[:, :, 0]
        there = self.present.double()
        number = there.sum(1).clamp(min=1)
        above, high = (found[:, :, 0] * there).sum(1), (found[:, :, 1] / R.square() * there).sum(1)
        total = (self.sums[:, :, 1] / R.square() * there).sum(1)
        square = (self.sums[:, :, 2] / R.pow(4) * there).sum(1) / _UP**2
        low = (total - high).clamp(min=0)
        n_eff = (total.square() / square).where(square > 0, torch.nan)
        usable, columns = self.known.usable, (above, high, low, total)
        kept = [zero_skipped(column / number, usable).to(self.own.dtype) for column in columns]
        return Counts(kept[0], kept[1], kept[2], kept[3], n_eff.where(usable, torch.nan).to(self.own.dtype), ~usable)

    def state(self) -> dict[str, Any]:
        cells = None if self.again or self.cells is None else [c.all(self.own.device) for c in self.cells]
        return {"sums": self.sums - self.begun, "cells": cells, "found": self.found}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.sums = self.begun + torch.stack([state["sums"] for state in states]).sum(0)
        for i, cells in enumerate(self.cells or []):
            cells.full = any(state["cells"] is None for state in states)
            cells.clear()
            if not cells.full:
                cells.put(*(torch.cat([state["cells"][i][part] for state in states]) for part in (0, 1)))

    def merge_again(self, states: Sequence[dict[str, Any]]) -> None:
        for eps in self.found:
            self.found[eps] = torch.stack([state["found"][eps] for state in states]).sum(0)

    def _window(self, eps: float, rows: slice) -> Tensor:
        """(r, p) half the width of the window, in similarity; 0 where nothing can count."""
        level = eps * (1 + self.sums[rows, :, 0]).square()
        g = 2 * level / (1 + (1 - 4 * level).clamp(min=0).sqrt())
        width = self.form.tau * ((1 - g).log() - g.log())
        return width.where(level < 0.25, 0.0).where(self.present[rows], 0.0)

    def _edges(self, eps: float) -> tuple[Tensor, Tensor]:
        """(n, p) similarities between which, both excluded, a cell counts."""
        width, own = self._window(eps, slice(None)), self.own.double()
        return (own - width).to(self.own.dtype), (own + width).to(self.own.dtype)

    def _near(self, i: int, which: Tensor, values: Tensor) -> Tensor:
        places = which.long()
        width = self._window(min(self.eps), slice(None))[:, i] + _SLACK
        return (values - self.own[places, i]).abs() < width[places]

    def _of_cells(self, eps: float) -> Tensor:
        low, high = self._edges(eps)
        assert self.cells is not None
        n, found = len(self.own), torch.zeros_like(self.found[eps])
        for i, cells in enumerate(self.cells):
            which, values = cells.all(self.own.device)
            places = which.long()
            inside = (values > low[places, i]) & (values < high[places, i])
            places, values = places[inside], values[inside]
            G = ((values.double() - self.own[places, i].double()) / self.form.tau).sigmoid()
            found[:, i, 0] = torch.bincount(places, minlength=n)
            found[:, i, 1] = torch.bincount(places, weights=G * (1 - G), minlength=n)
        return found

    def _of_positives(self, eps: float) -> Tensor:
        """(n, p, 2) the other positives that count, and their weight before it is divided by R²."""
        low, high = self._edges(eps)
        inside = (self.own[:, None, :] > low[:, :, None]) & (self.own[:, None, :] < high[:, :, None]) & self._others
        return torch.stack([inside.sum(2).double(), (self._steps() * inside).sum(2)], 2)
