"""Softmax weights: exponentials of the negatives over their sum, the positive among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import Counts
from lossscope.core.row_ops import LN2, dot, exp_

from .base import RowCounts, TileAccumulator, zero_skipped
from .buffers import Buffers
from .concentration import Concentration
from .kept_entries import KeptEntries
from .rows import QueryPositives, WholeRows

_ABOVE, _BELOW = 36.0, 30.0  # exponents whose squares, and 200,000 of them together, stay well within float32
_SLACK = 1e-5  # how much lower a cut is set while sums are incomplete, relative to the largest similarity


@dataclass(frozen=True)
class SoftmaxRule:
    """w_n = factor exp(scale s_n) / (Σ_n' exp(scale s_n') + exp(scale s₊ + lead)).

    lead None: the positive is not in the sum. pull: counted weight on the positive; None: the sum of the negatives'.
    """

    scale: float
    lead: float | None = 0.0
    factor: float = 1.0
    pull: float | None = None
    compares: ClassVar[bool] = False

    def side(self, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool) -> TileAccumulator:
        """Sums of one direction."""
        return _Sums(self, known, eps, space, collect)

    def of(self, whole: WholeRows) -> RowCounts:
        """Exponentials of whole rows."""
        return _Rows(self, whole)

    def log_whole(self, low: Tensor, top: Tensor, positives: Tensor) -> Tensor:
        """(r,) logarithm of the sum that divides, in units of exp(scale · top).

        low: (r,) sum of the negatives' exponentials, in these units. positives: (r, p).
        """
        if self.lead is None:
            return low.log()
        if positives.shape[1] == 1:
            own = self._exponents(positives[:, 0] - top)
        else:
            own = self._exponents(positives - top[:, None]).logsumexp(1)
        return torch.logaddexp(low.log(), own.add_(self.lead))

    def _exponents(self, gaps: Tensor) -> Tensor:
        """scale · gap, rounded as `exp_` rounds it."""
        return gaps.mul_(self.scale / LN2).double().mul_(LN2)

    def exact(self, eps: float, top: Tensor, log_whole: Tensor) -> Tensor:
        """(r,) similarity above which the weight is above eps, in float64."""
        if eps == 0:
            return torch.full_like(log_whole, torch.finfo(top.dtype).min)
        least = math.log(eps / self.factor) + 4 * torch.finfo(top.dtype).eps
        return top.double() + (least + log_whole) / self.scale

    def cut(self, eps: float, top: Tensor, log_whole: Tensor) -> Tensor:
        """(r,) similarity above which a cell counts: two units of the last place above the exact one, so that a weight
        that IS eps never counts, whatever rounding its sum met."""
        exact = self.exact(eps, top, log_whole)
        return (exact + 2 * torch.finfo(top.dtype).eps * exact.abs()).to(top.dtype)

    def counts(
        self, above: Tensor, mass: Tensor, low: Tensor, log_whole: Tensor, n_eff: Tensor, usable: Tensor
    ) -> Counts:
        """Of cells above the cut and their exponentials, and the sum of all exponentials, (n,) each."""
        share = log_whole.neg().exp_().mul_(self.factor)
        every = (low * share).clamp_(max=self.factor)
        high = torch.minimum(mass * share, every)
        pull = every if self.pull is None else torch.full_like(every, self.pull)
        columns = zero_skipped(torch.stack([above.double(), high, every - high, pull]), usable).to(n_eff.dtype)
        return Counts(columns[0], columns[1], columns[2], columns[3], n_eff.where(usable, torch.nan), ~usable)


@dataclass(frozen=True, eq=False)
class _Rows(RowCounts):
    """Sums of whole rows, in units of the hardest negative's exponential."""

    form: SoftmaxRule
    whole: WholeRows

    @cached_property
    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """(n,) each: Σ e, Σ e², Σ e (s − top), e = exp(scale (s − top)).

        The first is added up in the order of `counts`: nothing is low where every negative counts.
        """
        E = self.whole.exponentials(self.form.scale)
        return dot(E, torch.ones_like(E[0])), dot(E, E), dot(E, self.whole.gaps)

    @cached_property
    def n_eff(self) -> Tensor:
        """(n,) (Σ e)² / Σ e²."""
        low, square, _ = self.sums
        return low.square() / square

    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""
        whole, low = self.whole, self.sums[0].double()
        log_whole = self.form.log_whole(low, whole.top, whole.known.positives)
        truth = whole.above(self.form.cut(eps, whole.top, log_whole))
        above, mass = truth.sum(1), dot(truth, whole.exponentials(self.form.scale))
        return self.form.counts(above, mass, low, log_whole, self.n_eff, whole.usable)

    def spread(self) -> Concentration:
        """From sums: Σ p ln p = Σ p scale (s − top) − ln Σ e."""
        (low, _, fallen), scale = self.sums, self.form.scale
        share = 1 / low
        entropy = low.log() - fallen * share * scale
        top5 = exp_(self.whole.largest.clone(), scale).sum(0).mul_(share).clamp_(max=1)
        columns = torch.stack([self.n_eff, entropy.exp_(), share, top5])
        return Concentration(*columns.where(self.whole.usable, torch.nan).unbind())


class _Sums(TileAccumulator):
    """low, square: (n,) Σ e and Σ e² of the negatives, e = exp(scale (s − top)). top: (n,) the hardest negative met, or
    one for all where no query's is out of its range: then both directions share their exponentials."""

    def __init__(
        self, form: SoftmaxRule, known: QueryPositives, eps: Sequence[float], space: Buffers, collect: bool
    ) -> None:
        self.form, self.known, self.eps, self.space = form, known, tuple(dict.fromkeys(eps)), space
        n, device = len(known.positives), known.positives.device
        best = known.best[known.usable]
        self.fixed = float(best.median()) if collect and len(best) else None
        start = torch.finfo(best.dtype).min / 4 if self.fixed is None else self.fixed
        self.top = torch.full_like(known.best, start)
        self.low = torch.zeros(n, dtype=torch.float64, device=device)
        self.square = torch.zeros_like(self.low)
        self.cells = KeptEntries(n) if collect else None
        self.found = {e: (torch.zeros_like(self.low), torch.zeros_like(self.low)) for e in self.eps}

    def _in_range(self, tile: Tensor, fixed: float) -> bool:
        """Whether the hardest negatives of a tile, of either direction, are where squares of exponentials do well."""
        highest, lowest = self.space.extent(tile)
        scale = self.form.scale
        return (highest - fixed) * scale <= _ABOVE and (fixed - lowest) * scale <= _BELOW

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        if self.fixed is not None and not self._in_range(tile, self.fixed):
            self.fixed = None  # from here on every query has a top of its own
            self.top = self.top.where(self.low > 0, torch.finfo(self.top.dtype).min / 4)
        if self.fixed is not None:
            E, square = self.space.exponentials(tile, self.form.scale, self.fixed)
            self.low[rows] += self.space.total(E, dim)
            self.square[rows] += self.space.total(square, dim)
        else:
            self._online(tile, rows, dim)
        if self.cells is not None and not self.cells.full:
            cut = self._lower(rows).unsqueeze(dim)
            self.cells.take(tile, self.space.above(tile, cut), rows, dim, self._thin)

    def _online(self, tile: Tensor, rows: slice, dim: int) -> None:
        before = self.top[rows]
        top = torch.maximum(before, tile.amax(dim))
        E = self._exponentials(tile, top, dim)
        shrink = ((before.double() - top.double()) * self.form.scale).exp()
        self.low[rows] = self.low[rows] * shrink + self.space.total(E, dim)
        self.square[rows] = self.square[rows] * shrink.square() + self.space.total(E.square_(), dim)
        self.top[rows] = top

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        E = self._exponentials(tile, self.top[rows], dim)
        truth = self.space.like(tile, "float truth")
        for eps, (above, mass) in self.found.items():
            torch.gt(tile, self._cut(eps, rows).unsqueeze(dim), out=truth)
            above[rows] += self.space.total(truth, dim)
            mass[rows] += self.space.total(truth.mul_(E), dim)

    @property
    def again(self) -> bool:
        return self.cells is None or self.cells.full

    def counts(self, eps: float) -> Counts:
        above, mass = self.found[eps] if self.again else self._of_cells(eps)
        n_eff = (self.low.square() / self.square).to(self.top.dtype)
        return self.form.counts(above, mass, self.low, self._log_whole(slice(None)), n_eff, self.known.usable)

    def state(self) -> dict[str, Any]:
        which, values = (None, None) if self.again or self.cells is None else self.cells.all(self.top.device)
        sums = {"top": self.top, "low": self.low, "square": self.square, "found": self.found}
        return {**sums, "which": which, "values": values}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        top = torch.stack([state["top"] for state in states]).amax(0)
        shrink = [((state["top"].double() - top.double()) * self.form.scale).exp() for state in states]
        self.low = torch.stack([s["low"] * f for s, f in zip(states, shrink, strict=True)]).sum(0)
        self.square = torch.stack([s["square"] * f.square() for s, f in zip(states, shrink, strict=True)]).sum(0)
        self.top = top
        if self.cells is not None:
            self.cells.full = any(state["which"] is None for state in states)
            self.cells.clear()
            if not self.cells.full:
                self.cells.put(*(torch.cat([state[name] for state in states]) for name in ("which", "values")))

    def merge_again(self, states: Sequence[dict[str, Any]]) -> None:
        for eps in self.found:
            parts = [state["found"][eps] for state in states]
            self.found[eps] = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def _exponentials(self, tile: Tensor, top: Tensor, dim: int) -> Tensor:
        E = torch.sub(tile, top.unsqueeze(dim), out=self.space.like(tile))
        return exp_(E, self.form.scale)

    def _log_whole(self, rows: slice) -> Tensor:
        return self.form.log_whole(self.low[rows], self.top[rows], self.known.positives[rows])

    def _cut(self, eps: float, rows: slice) -> Tensor:
        return self.form.cut(eps, self.top[rows], self._log_whole(rows))

    def _lower(self, rows: slice) -> Tensor:
        """(r,) what no cut can go below any more."""
        exact = self.form.exact(min(self.eps), self.top[rows], self._log_whole(rows))
        return (exact - _SLACK * self.top[rows].abs().clamp(min=1)).to(self.top.dtype)

    def _thin(self, which: Tensor, values: Tensor) -> Tensor:
        return values > self._lower(slice(None))[which.long()]

    def _of_cells(self, eps: float) -> tuple[Tensor, Tensor]:
        assert self.cells is not None
        which, values = self.cells.all(self.top.device)
        kept = values > self._cut(eps, slice(None))[which.long()]
        which, values = which[kept].long(), values[kept]
        E = ((values.double() - self.top[which].double()) * self.form.scale).exp()
        n = len(self.top)
        return torch.bincount(which, minlength=n).double(), torch.bincount(which, weights=E, minlength=n)
