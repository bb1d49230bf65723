"""Counting rule of a smooth rank: the weight of a candidate is the slope of its smooth step at each positive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lossscope.core.counts import CountEffects, Counts

from .block import Block
from .fold import CountFold, Fold, FoldedRowCounts, Keep, RowCounts, fill_skipped
from .kept_entries import KeptEntries
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

    def fold(self, positives: QueryPositives, eps: Sequence[float], keep: Keep = "some") -> CountFold:
        """Return what is kept: the sums over G and D, and entries."""
        return _SmoothRankFold(self, positives, tuple(dict.fromkeys(eps)), keep)

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, taken as one tile."""
        return _SmoothRankRowCounts(self, whole)


@dataclass(frozen=True, eq=False)
class _SmoothRankRowCounts(FoldedRowCounts):
    rule: SmoothRankRule

    def effects(self, eps: float) -> CountEffects:
        """Return the effect of each candidate: counts less those without it, where R of all others is smaller.

        Without candidate c all other weights of positive i grow by R_i² / (R_i − G_ic)². Which of them then are above
        eps follows from how many there are just above it, per unit of log w.
        """
        wider = eps * math.exp(_STEP)
        effects: CountEffects = self.folded([eps, wider]).effects(self.whole.negatives, eps, wider)
        return effects


class _SmoothRankFold(CountFold):
    """Sums over every candidate of each of p positives, and the entries that can still count.

    sums: (n, p, 3) Σ G, Σ D and Σ (_UP D)², D = G (1 − G), of each positive, over the candidates of the blocks.
    """

    def __init__(self, rule: SmoothRankRule, positives: QueryPositives, eps: tuple[float, ...], keep: Keep) -> None:
        self.rule, self.positives, self.eps, self.keep = rule, positives, eps, keep
        self.s_pos = positives.similarities  # (n, p), −inf where a query has fewer
        self.present = self.s_pos > -torch.inf  # (n, p) bool: whether there is a positive
        self.s_pos_or_inf = self.s_pos.where(self.present, torch.inf)  # of padding every entry is infinitely far below
        different = ~torch.eye(self.s_pos.shape[1], dtype=torch.bool, device=self.s_pos.device)
        self._positive_pairs = different & self.present[:, :, None] & self.present[:, None, :]  # (n, p, p)
        D, gap = self.positive_slopes, self._positive_gaps
        squares = (D * _UP).square().sum(2)
        self.initial_sums = torch.stack(  # (n, p, 3) over the other positives
            [gap.sigmoid().where(self._positive_pairs, 0.0).sum(2), D.sum(2), squares], 2
        )
        self.begin()

    def begin(self, known: Tensor | None = None) -> None:
        self.before = known  # sums of earlier blocks
        n, p = self.s_pos.shape
        self.sums = torch.zeros(n, p, 3, dtype=torch.float64, device=self.s_pos.device)
        self.entries = [KeptEntries(n, self.keep) for _ in range(p)]
        self.recounted: dict[float, Tensor] | None = None

    def add(self, block: Block) -> None:
        rows = block.rows
        widths = None if all(kept.full for kept in self.entries) else self._widths(rows)
        for i in range(self.s_pos.shape[1]):
            X = block.minus(self.s_pos_or_inf[rows, i])
            if widths is not None and not self.entries[i].full:
                near = torch.abs(X, out=block.work("second")).neg_()
                chosen = block.entries_where(near, -widths[:, i].to(X.dtype))
                self.entries[i].add(chosen, rows, partial(self._can_count, i))
            G = X.div_(self.rule.tau).sigmoid_()
            self.sums[rows, i, 0] += block.sum(G)
            D = torch.addcmul(G, G, G, value=-1, out=block.work("second"))
            self.sums[rows, i, 1] += block.sum(D)
            self.sums[rows, i, 2] += block.sum(D.mul_(_UP).square_())

    def merge(self, later: _SmoothRankFold) -> None:
        self.sums = self.sums + later.sums
        for i, (entries, others) in enumerate(zip(self.entries, later.entries, strict=True)):
            entries.merge(others, partial(self._can_count, i))

    def known(self) -> Tensor:
        return self.sums

    def numbers(self) -> dict[str, Any]:
        return {"sums": self.sums, "entries": [kept.numbers(self.sums.device) for kept in self.entries]}

    def load(self, numbers: Mapping[str, Any]) -> None:
        self.sums = numbers["sums"]
        for entries, kept in zip(self.entries, numbers["entries"], strict=True):
            entries.load(kept)

    def again(self) -> _RecountFold | None:
        return _RecountFold(self) if any(entries.full for entries in self.entries) else None

    def finish(self, second: _RecountFold) -> None:
        self.recounted = second.counted

    @property
    def _positive_gaps(self) -> Tensor:
        """(n, p, p) (s_j − s_i) / tau of two positives."""
        gap = (self.s_pos[:, None, :] - self.s_pos[:, :, None]) / self.rule.tau
        return gap.where(self._positive_pairs, -torch.inf).double()

    @property
    def positive_slopes(self) -> Tensor:
        """(n, p, p) D of two positives."""
        G = self._positive_gaps.sigmoid()
        return G * (1 - G)

    def _half_width(self, eps: float, sums: Tensor, rows: slice = slice(None)) -> Tensor:
        """(r, p) half the width of the window, in similarity; 0 where nothing can count; sums are of the rows."""
        level = eps * (1 + (sums[:, :, 0] + self.initial_sums[rows, :, 0])).square()
        g = 2 * level / (1 + (1 - 4 * level).clamp(min=0).sqrt())
        width = self.rule.tau * ((1 - g).log() - g.log())
        return width.where(level < 0.25, 0.0).where(self.present[rows], 0.0)

    def window(self, eps: float) -> tuple[Tensor, Tensor]:
        """(n, p) bounds of the similarities that count; both bounds are excluded."""
        width, s_pos = self._half_width(eps, self.sums), self.s_pos.double()
        return (s_pos - width).to(self.s_pos.dtype), (s_pos + width).to(self.s_pos.dtype)

    def _count_positives(self, eps: float) -> Tensor:
        """(n, p, 2) number of other positives that count, and their weight before it is divided by R²."""
        low, high = self.window(eps)
        s_pos = self.s_pos[:, None, :]
        inside = (s_pos > low[:, :, None]) & (s_pos < high[:, :, None]) & self._positive_pairs
        return torch.stack([inside.sum(2).double(), (self.positive_slopes * inside).sum(2)], 2)

    def _widths(self, rows: slice = slice(None)) -> Tensor:
        """(r, p) half the widths of the windows by now, with slack, of some queries."""
        sums = self.sums[rows] if self.before is None else self.sums[rows] + self.before[rows]
        return self._half_width(min(self.eps), sums, rows) + _SLACK

    @property
    def _R(self) -> Tensor:
        """(n, p) smooth rank of each positive."""
        return 1 + self._totals[:, :, 0]

    @property
    def _totals(self) -> Tensor:
        """(n, p, 3) the sums over all candidates, the other positives included."""
        return self.sums + self.initial_sums

    def _counted(self, eps: float) -> Tensor:
        """(n, p, 2) number of candidates that count, and their weight before it is divided by R²."""
        counted = self._count_entries(eps) if self.recounted is None else self.recounted[eps]
        return counted + self._count_positives(eps)

    def counts(self, eps: float) -> Counts:
        counted, sums, R, present = self._counted(eps), self._totals, self._R, self.present.double()
        number = present.sum(1).clamp(min=1)
        above, high = (counted[:, :, 0] * present).sum(1), (counted[:, :, 1] / R.square() * present).sum(1)
        total = (sums[:, :, 1] / R.square() * present).sum(1)
        low = (total - high).clamp(min=0)
        usable, columns, dtype = self.positives.usable, (above, high, low, total), self.s_pos.dtype
        means = [fill_skipped(column / number, usable).to(dtype) for column in columns]
        n_eff = self._n_eff().where(usable, torch.nan).to(dtype)
        return Counts(means[0], means[1], means[2], means[3], n_eff, ~usable)

    def effects(self, negatives: Tensor, eps: float, wider: float) -> CountEffects:
        """Return the effect of each candidate, (n, c), after two passes over all negatives, (n, c).

        Args:
            negatives: similarities, −inf elsewhere.
            eps: threshold.
            wider: the one up to which weights near eps are counted, e^_STEP times as large.
        """
        counted, sums = self._counted(eps), self._totals
        further, initial = self._counted(wider), self.initial_sums
        low, high = self.window(eps)
        R, n, c = self._R, *negatives.shape
        effects = torch.zeros(6, n, c, dtype=torch.float64, device=negatives.device)
        above, all_inside, mass_above, mass, totals, squares = effects
        for i in range(self.s_pos.shape[1]):
            G = ((negatives - self.s_pos_or_inf[:, i, None]) / self.rule.tau).double().sigmoid()
            D, r = G * (1 - G), R[:, i, None]
            inside = ((negatives > low[:, i, None]) & (negatives < high[:, i, None])).double()
            w, growth = D / r.square(), (r / (r - G)).square()
            crossing = ((counted[:, i, 0] - further[:, i, 0]) / _STEP)[:, None] * growth.log()
            counted_terms, total = counted[:, i, 1, None] / r.square(), sums[:, i, 1, None] / r.square()
            total_without = _without(w, initial[:, i, 1, None] / r.square()) * growth
            own_without = (counted_terms - w * inside + eps * crossing).clamp(min=0) * growth
            fewer = inside - crossing
            rows, columns = (_MUCH * r < G).nonzero().unbind(1)
            other = self._count_positives_at(i, eps, rows, (r - G)[rows, columns])
            grown = (D[rows] / (r - G)[rows, columns, None].square()).scatter(1, columns[:, None], 0.0)
            fewer[rows, columns] = counted[rows, i, 0] - (grown > eps).sum(1) - other[:, 0]
            own_without[rows, columns] = (grown * (grown > eps)).sum(1) + other[:, 1]
            own_without = torch.minimum(own_without, total_without)
            above += fewer
            all_inside += inside
            mass_above += counted_terms - own_without
            mass += total - total_without
            totals += total_without
            squares += _without(w.square(), initial[:, i, 2, None] / r.pow(4) / _UP**2) * growth.square()
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
        w = self.positive_slopes[rows, i] / R.square()[:, None]
        return torch.stack([(w > eps).sum(1).double(), (w * (w > eps)).sum(1)], 1)

    def _n_eff(self) -> Tensor:
        """(n,) (Σ w)² / Σ w² over all positives; NaN without weight."""
        R, sums, present = self._R, self._totals, self.present.double()
        total = (sums[:, :, 1] / R.square() * present).sum(1)
        square = (sums[:, :, 2] / R.pow(4) * present).sum(1) / _UP**2
        return (total.square() / square).where(square > 0, torch.nan)

    def _can_count(self, i: int, queries: Tensor, similarities: Tensor) -> Tensor:
        """Whether entries are within the window of positive i as it is by now."""
        rows = queries.long()
        return (similarities - self.s_pos[rows, i]).abs() < self._widths()[rows, i]

    def _count_entries(self, eps: float) -> Tensor:
        """(n, p, 2) number of kept entries that count, and their weight before it is divided by R²."""
        low, high = self.window(eps)
        n, counted = len(self.s_pos), torch.zeros_like(self.sums[:, :, :2])
        for i, entries in enumerate(self.entries):
            queries, similarities = entries.entries(self.s_pos.device)
            rows = queries.long()
            inside = (similarities > low[rows, i]) & (similarities < high[rows, i])
            rows, similarities = rows[inside], similarities[inside]
            G = ((similarities.double() - self.s_pos[rows, i].double()) / self.rule.tau).sigmoid()
            counted[:, i, 0] = torch.bincount(rows, minlength=n)
            counted[:, i, 1] = torch.bincount(rows, weights=G * (1 - G), minlength=n)
        return counted


class _RecountFold(Fold):
    """The entries within the windows that the sums of a first pass give.

    counted: eps -> (n, p, 2) number of entries that count, and their weight before it is divided by R².
    """

    kept = ("counted",)

    def __init__(self, first: _SmoothRankFold) -> None:
        self.s_pos_or_inf, self.tau = first.s_pos_or_inf, first.rule.tau
        self.windows = {eps: first.window(eps) for eps in first.eps}
        self.begin()

    def begin(self, known: Any = None) -> None:
        zeros = partial(torch.zeros, *self.s_pos_or_inf.shape, 2, dtype=torch.float64, device=self.s_pos_or_inf.device)
        self.counted = {eps: zeros() for eps in self.windows}

    def add(self, block: Block) -> None:
        rows = block.rows
        for i in range(self.s_pos_or_inf.shape[1]):
            D = block.minus(self.s_pos_or_inf[rows, i])
            D.div_(self.tau).sigmoid_()
            D.addcmul_(D, D, value=-1)
            for eps, counted in self.counted.items():
                low, high = (edge[rows, i] for edge in self.windows[eps])
                inside = block.above(low, "third").mul_(block.below(high, "second"))
                counted[rows, i, 0] += block.sum(inside)
                counted[rows, i, 1] += block.sum(inside.mul_(D))

    def merge(self, later: _RecountFold) -> None:
        self.counted = {eps: counted + later.counted[eps] for eps, counted in self.counted.items()}


def _without(terms: Tensor, rest: Tensor) -> Tensor:
    """(n, c) Σ terms + rest, without each term; of the largest the others are added up, nothing subtracted."""
    total, largest = terms.sum(1, keepdim=True) + rest, terms.argmax(1, keepdim=True)
    others = terms.scatter(1, largest, 0.0).sum(1, keepdim=True) + rest
    return (total - terms).clamp(min=0).scatter(1, largest, others)
