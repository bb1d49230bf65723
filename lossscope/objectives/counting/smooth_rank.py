"""Counting rule of a smooth rank: the weight of a candidate is the slope of its smooth step at each positive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .base import OneTileCounts, RowCounts, TileAccumulator, fill_skipped
from .buffers import Buffers
from .effects import CountEffects
from .kept_entries import KeptEntries
from .large_entries import LargeEntries
from .rows import QueryPositives, WholeRows

_UP = 2.0**54  # factor on D before it is squared, so that the square of e⁻⁸⁰ does not underflow
_STEP = 0.5  # of log w, over which the number of weights near eps is measured
_MUCH = 0.05  # share of a candidate in R without which all other weights are counted again
_SLACK = 1e-5  # how much wider a window is while sums are incomplete, in similarity


@dataclass(frozen=True)
class SmoothRankRule:
    """w_ij = G_ij (1 − G_ij) / R_i², G_ij = sigmoid((s_j − s_i) / tau), R_i = 1 + Σ_{j≠i} G_ij, i a positive.

    j is any other candidate. w_ij > eps where |s_j − s_i| < tau log((1 − g) / g), g (1 − g) = eps R_i²: a window
    around each positive, which shrinks as R_i grows.
    """

    tau: float

    def accumulator(
        self, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> TileAccumulator:
        """Return an accumulator of the sums over G and D."""
        return _SmoothRankAccumulator(self, positives, eps, buffers, collect)

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, taken as one tile."""
        return _SmoothRankRowCounts(self, whole)


@dataclass(frozen=True, eq=False)
class _SmoothRankRowCounts(OneTileCounts):
    rule: SmoothRankRule

    def effects(self, eps: float) -> CountEffects:
        """Return the effect of each candidate: counts less those without it, where R of all others is smaller.

        Without candidate c all other weights of positive i grow by R_i² / (R_i − G_ic)². Which of them then are above
        eps follows from how many there are just above it, per unit of log w.
        """
        whole, wider = self.whole, eps * math.exp(_STEP)
        sums = _SmoothRankAccumulator(self.rule, whole.query_positives, [eps, wider], Buffers(), collect=False)
        rows = slice(0, len(whole.S))
        sums.add(whole.negatives, rows, 1)
        sums.recount(whole.negatives, rows, 1)
        return sums.effects(whole.negatives, eps, wider)


class _SmoothRankAccumulator(TileAccumulator):
    """sums: (n, p, 3) Σ G, Σ D and Σ (_UP D)², D = G (1 − G), of each positive; they start with the other positives."""

    def __init__(
        self, rule: SmoothRankRule, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> None:
        self.rule, self.positives, self.eps, self.buffers = rule, positives, tuple(dict.fromkeys(eps)), buffers
        self.s_pos = positives.similarities
        n, p = self.s_pos.shape
        self.present = self.s_pos > -torch.inf
        self.s_pos_or_inf = self.s_pos.where(self.present, torch.inf)  # padding: every entry is infinitely far below
        self.sums = torch.zeros(n, p, 3, dtype=torch.float64, device=self.s_pos.device)
        self.initial_sums = self._sums_over_positives()
        self.sums += self.initial_sums
        self.entries = [KeptEntries(n) for _ in range(p)] if collect else None
        self.recounted = {e: torch.zeros(n, p, 2, dtype=torch.float64, device=self.s_pos.device) for e in self.eps}

    def _sums_over_positives(self) -> Tensor:
        """(n, p, 3) the sums over the other positives."""
        D, gap = self._positive_slopes(), self._positive_gaps()
        squares = (D * _UP).square().sum(2)
        return torch.stack([gap.sigmoid().where(self._positive_pairs, 0.0).sum(2), D.sum(2), squares], 2)

    @property
    def _positive_pairs(self) -> Tensor:
        """(n, p, p) bool: pairs of two different positives."""
        p = self.s_pos.shape[1]
        different = ~torch.eye(p, dtype=torch.bool, device=self.s_pos.device)
        return different & self.present[:, :, None] & self.present[:, None, :]

    def _positive_gaps(self) -> Tensor:
        """(n, p, p) (s_j − s_i) / tau of two positives."""
        gap = (self.s_pos[:, None, :] - self.s_pos[:, :, None]) / self.rule.tau
        return gap.where(self._positive_pairs, -torch.inf).double()

    def _positive_slopes(self) -> Tensor:
        """(n, p, p) D of two positives."""
        G = self._positive_gaps().sigmoid()
        return G * (1 - G)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        for i in range(self.s_pos.shape[1]):
            X = torch.sub(tile, self.s_pos_or_inf[rows, i].unsqueeze(dim), out=self.buffers.empty_like(tile))
            if self.entries is not None and not self.entries[i].full:
                width = self._half_width(min(self.eps), rows)[:, i] + _SLACK
                near = torch.abs(X, out=self.buffers.empty_like(tile, "second")).neg_()
                chosen = self.buffers.greater(near, -width.to(X.dtype).unsqueeze(dim))
                self.entries[i].add(LargeEntries.where(chosen, tile, dim), rows, partial(self._can_count, i))
            G = X.div_(self.rule.tau).sigmoid_()
            self.sums[rows, i, 0] += self.buffers.sum(G, dim)
            D = torch.addcmul(G, G, G, value=-1, out=self.buffers.empty_like(tile, "second"))
            self.sums[rows, i, 1] += self.buffers.sum(D, dim)
            self.sums[rows, i, 2] += self.buffers.sum(D.mul_(_UP).square_(), dim)

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = self.buffers.empty_like(tile, "third")
        for i in range(self.s_pos.shape[1]):
            D = torch.sub(tile, self.s_pos_or_inf[rows, i].unsqueeze(dim), out=self.buffers.empty_like(tile))
            D.div_(self.rule.tau).sigmoid_()
            D.addcmul_(D, D, value=-1)
            for eps, recounted in self.recounted.items():
                low, high = (edge[rows, i].unsqueeze(dim) for edge in self._window(eps))
                inside = torch.gt(tile, low, out=truth)
                inside.mul_(torch.lt(tile, high, out=self.buffers.empty_like(tile, "second")))
                recounted[rows, i, 0] += self.buffers.sum(inside, dim)
                recounted[rows, i, 1] += self.buffers.sum(inside.mul_(D), dim)

    @property
    def needs_second_pass(self) -> bool:
        return self.entries is None or any(entries.full for entries in self.entries)

    def counts(self, eps: float) -> Counts:
        counted = self.recounted[eps] if self.needs_second_pass else self._count_entries(eps)
        counted = counted + self._count_positives(eps)
        R = 1 + self.sums[:, :, 0]
        present = self.present.double()
        number = present.sum(1).clamp(min=1)
        above, high = (counted[:, :, 0] * present).sum(1), (counted[:, :, 1] / R.square() * present).sum(1)
        total = (self.sums[:, :, 1] / R.square() * present).sum(1)
        square = (self.sums[:, :, 2] / R.pow(4) * present).sum(1) / _UP**2
        low = (total - high).clamp(min=0)
        n_eff = (total.square() / square).where(square > 0, torch.nan)
        usable, columns, dtype = self.positives.usable, (above, high, low, total), self.s_pos.dtype
        means = [fill_skipped(column / number, usable).to(dtype) for column in columns]
        return Counts(means[0], means[1], means[2], means[3], n_eff.where(usable, torch.nan).to(dtype), ~usable)

    def effects(self, negatives: Tensor, eps: float, wider: float) -> CountEffects:
        """Return the effect of each candidate, (n, c), after `add` and `recount` of all negatives, (n, c).

        Args:
            negatives: similarities, −inf elsewhere.
            eps: threshold.
            wider: the one up to which weights near eps are counted, e^_STEP times as large.
        """
        counted = self.recounted[eps] + self._count_positives(eps)
        further = self.recounted[wider] + self._count_positives(wider)
        low, high = self._window(eps)
        R, n, c = 1 + self.sums[:, :, 0], *negatives.shape
        effects = torch.zeros(6, n, c, dtype=torch.float64, device=negatives.device)
        above, all_inside, mass_above, mass, totals, squares = effects
        for i in range(self.s_pos.shape[1]):
            G = ((negatives - self.s_pos_or_inf[:, i, None]) / self.rule.tau).double().sigmoid()
            D, r = G * (1 - G), R[:, i, None]
            inside = ((negatives > low[:, i, None]) & (negatives < high[:, i, None])).double()
            w, growth = D / r.square(), (r / (r - G)).square()
            crossing = ((counted[:, i, 0] - further[:, i, 0]) / _STEP)[:, None] * growth.log()
            own, total = counted[:, i, 1, None] / r.square(), self.sums[:, i, 1, None] / r.square()
            total_without = _without(w, self.initial_sums[:, i, 1, None] / r.square()) * growth
            own_without = (own - w * inside + eps * crossing).clamp(min=0) * growth
            fewer = inside - crossing
            rows, columns = (_MUCH * r < G).nonzero().unbind(1)
            other = self._count_positives_at(i, eps, rows, (r - G)[rows, columns])
            grown = (D[rows] / (r - G)[rows, columns, None].square()).scatter(1, columns[:, None], 0.0)
            fewer[rows, columns] = counted[rows, i, 0] - (grown > eps).sum(1) - other[:, 0]
            own_without[rows, columns] = (grown * (grown > eps)).sum(1) + other[:, 1]
            own_without = torch.minimum(own_without, total_without)
            above += fewer
            all_inside += inside
            mass_above += own - own_without
            mass += total - total_without
            totals += total_without
            squares += _without(w.square(), self.initial_sums[:, i, 2, None] / r.pow(4) / _UP**2) * growth.square()
        number = self.present.double().sum(1, keepdim=True).clamp(min=1)
        all_above = (counted[:, :, 0] * self.present).sum(1, keepdim=True)
        n_eff = self._n_eff()[:, None] - (totals.square() / squares).where(squares > 0, torch.nan)
        is_negative = (negatives > -torch.inf) & self.positives.usable[:, None]

        def of_negatives(x: Tensor) -> Tensor:
            return x.where(is_negative, 0.0)

        only = ((all_above > 0) & (all_inside == all_above)).double()
        below = (mass - mass_above) / number
        means = [of_negatives(x) for x in (above / number, only, mass_above / number, below, mass / number)]
        has_weight = is_negative & (self._n_eff() > 0)[:, None]
        return CountEffects(means[0], means[1], means[2], means[3], means[4], n_eff.where(has_weight, 0.0))

    def _count_positives_at(self, i: int, eps: float, rows: Tensor, R: Tensor) -> Tensor:
        """(k, 2) number of other positives whose weight at positive i of a row is above eps, and their weight.

        Args:
            i: place of the positive.
            eps: threshold.
            rows: (k,) queries.
            R: (k,) smooth rank of the positive.
        """
        w = self._positive_slopes()[rows, i] / R.square()[:, None]
        return torch.stack([(w > eps).sum(1).double(), (w * (w > eps)).sum(1)], 1)

    def _n_eff(self) -> Tensor:
        """(n,) (Σ w)² / Σ w² over all positives; NaN without weight."""
        R, present = 1 + self.sums[:, :, 0], self.present.double()
        total = (self.sums[:, :, 1] / R.square() * present).sum(1)
        square = (self.sums[:, :, 2] / R.pow(4) * present).sum(1) / _UP**2
        return (total.square() / square).where(square > 0, torch.nan)

    def state(self) -> dict[str, Any]:
        entries = None
        if self.entries is not None and not self.needs_second_pass:
            entries = [kept.entries(self.s_pos.device) for kept in self.entries]
        return {"sums": self.sums - self.initial_sums, "entries": entries, "recounted": self.recounted}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.sums = self.initial_sums + torch.stack([state["sums"] for state in states]).sum(0)
        for i, entries in enumerate(self.entries or []):
            entries.full = any(state["entries"] is None for state in states)
            entries.clear()
            if not entries.full:
                entries.replace(*(torch.cat([state["entries"][i][part] for state in states]) for part in (0, 1)))

    def merge_second_pass(self, states: Sequence[dict[str, Any]]) -> None:
        for eps in self.recounted:
            self.recounted[eps] = torch.stack([state["recounted"][eps] for state in states]).sum(0)

    def keep_all_that_count(self) -> None:
        for entries in self.entries or []:
            entries.may_be_full = False

    def drop_entries(self) -> None:
        for i, entries in enumerate(self.entries or []):
            entries.filter(partial(self._can_count, i))

    def _half_width(self, eps: float, rows: slice) -> Tensor:
        """(r, p) half the width of the window, in similarity; 0 where nothing can count."""
        level = eps * (1 + self.sums[rows, :, 0]).square()
        g = 2 * level / (1 + (1 - 4 * level).clamp(min=0).sqrt())
        width = self.rule.tau * ((1 - g).log() - g.log())
        return width.where(level < 0.25, 0.0).where(self.present[rows], 0.0)

    def _window(self, eps: float) -> tuple[Tensor, Tensor]:
        """(n, p) bounds of the similarities that count; both bounds are excluded."""
        width, s_pos = self._half_width(eps, slice(None)), self.s_pos.double()
        return (s_pos - width).to(self.s_pos.dtype), (s_pos + width).to(self.s_pos.dtype)

    def _can_count(self, i: int, queries: Tensor, similarities: Tensor) -> Tensor:
        """Whether entries are within the window of positive i as it is by now."""
        rows = queries.long()
        width = self._half_width(min(self.eps), slice(None))[:, i] + _SLACK
        return (similarities - self.s_pos[rows, i]).abs() < width[rows]

    def _count_entries(self, eps: float) -> Tensor:
        """(n, p, 2) number of kept entries that count, and their weight before it is divided by R²."""
        low, high = self._window(eps)
        assert self.entries is not None
        n, counted = len(self.s_pos), torch.zeros_like(self.recounted[eps])
        for i, entries in enumerate(self.entries):
            queries, similarities = entries.entries(self.s_pos.device)
            rows = queries.long()
            inside = (similarities > low[rows, i]) & (similarities < high[rows, i])
            rows, similarities = rows[inside], similarities[inside]
            G = ((similarities.double() - self.s_pos[rows, i].double()) / self.rule.tau).sigmoid()
            counted[:, i, 0] = torch.bincount(rows, minlength=n)
            counted[:, i, 1] = torch.bincount(rows, weights=G * (1 - G), minlength=n)
        return counted

    def _count_positives(self, eps: float) -> Tensor:
        """(n, p, 2) number of other positives that count, and their weight before it is divided by R²."""
        low, high = self._window(eps)
        s_pos = self.s_pos[:, None, :]
        inside = (s_pos > low[:, :, None]) & (s_pos < high[:, :, None]) & self._positive_pairs
        return torch.stack([inside.sum(2).double(), (self._positive_slopes() * inside).sum(2)], 2)


def _without(terms: Tensor, rest: Tensor) -> Tensor:
    """(n, c) Σ terms + rest, without each term; of the largest the others are added up, nothing subtracted."""
    total, largest = terms.sum(1, keepdim=True) + rest, terms.argmax(1, keepdim=True)
    others = terms.scatter(1, largest, 0.0).sum(1, keepdim=True) + rest
    return (total - terms).clamp(min=0).scatter(1, largest, others)
