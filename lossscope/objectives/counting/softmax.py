"""Counting rule of a softmax: exponentials of the negatives over their sum, with or without the positive in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lossscope.core.counts import Counts
from lossscope.core.row_ops import LN2, exp_, row_dot
from lossscope.errors import InputError

from .base import RowCounts, TileAccumulator, fill_skipped
from .buffers import Buffers
from .concentration import Concentration
from .effects import CountEffects
from .kept_entries import KeptEntries
from .large_entries import EntrySearch, LargeEntries
from .rows import QueryPositives, WholeRows

_ABOVE, _BELOW = 36.0, 30.0  # exponents whose squares, and 200,000 of them together, stay well within float32
_SCALES = (1e-6, 1e6)  # of which 1/scale and scale · similarity still have the digits that a weight needs
_MAX_ERROR = 0.25  # of the exponent at a cut, from rounding the similarities
_STEP = 0.5  # of log w, over which the number of weights near eps is measured
_MUCH = 0.05  # share of a candidate without which all other weights are counted again
_SLACK = 1e-5  # how much lower a cut is set while sums are incomplete, relative to the largest similarity


@dataclass(frozen=True)
class SoftmaxRule:
    """w_n = factor exp(scale s_n) / (Σ_n' exp(scale s_n') + exp(scale s₊ + lead)).

    Raises InputError for a scale, 1/tau, that floats cannot count with, and when similarities are so large that two
    neighbouring floats have quite different weights.
    """

    scale: float
    lead: float | None = 0.0  # added to the exponent of the positive; None: the positive is not in the sum
    factor: float = 1.0
    pull: float | None = None  # counted weight on the positive; None: the sum of the negatives'

    def __post_init__(self) -> None:
        if not _SCALES[0] <= self.scale <= _SCALES[1]:
            low, high = _SCALES
            raise InputError(f"the scale of a softmax, 1/tau, must be in {low:g}..{high:g}; got {self.scale:g}")

    def accumulator(
        self, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> TileAccumulator:
        """Return an accumulator of the sums of exponentials."""
        return _SoftmaxAccumulator(self, positives, eps, buffers, collect)

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, from their exponentials."""
        return _SoftmaxRowCounts(self, whole)

    def log_denominator(self, low: Tensor, reference: Tensor, positives: Tensor) -> Tensor:
        """(r,) logarithm of the denominator, in units of exp(scale · reference).

        Args:
            low: (r,) sum of the exponentials of the negatives, in these units.
            reference: (r,) similarity.
            positives: (r, p) similarities.
        """
        if self.lead is None:
            return low.log()
        if positives.shape[1] == 1:
            exponent = self._exponents(positives[:, 0] - reference)
        else:
            exponent = self._exponents(positives - reference[:, None]).logsumexp(1)
        return torch.logaddexp(low.log(), exponent.add_(self.lead))

    def _exponents(self, gaps: Tensor) -> Tensor:
        """scale · gap, rounded as `exp_` rounds it."""
        return gaps.mul_(self.scale / LN2).double().mul_(LN2)

    def exact_cut(self, eps: float, reference: Tensor, log_denominator: Tensor) -> Tensor:
        """(r,) similarity above which the weight is above eps, in float64."""
        if eps == 0:
            return torch.full_like(log_denominator, torch.finfo(reference.dtype).min)
        log_weight = math.log(eps / self.factor) + 4 * torch.finfo(reference.dtype).eps
        return reference.double() + (log_weight + log_denominator) / self.scale

    def cut(self, eps: float, reference: Tensor, log_denominator: Tensor) -> Tensor:
        """(r,) similarity above which an entry counts: the exact one plus two units in the last place.

        So a weight that is equal to eps never counts, however its sum was rounded.
        """
        exact = self.exact_cut(eps, reference, log_denominator)
        if eps:
            self._require_resolved(exact, torch.finfo(reference.dtype))
        return (exact + 2 * torch.finfo(reference.dtype).eps * exact.abs()).to(reference.dtype)

    def _require_resolved(self, cut: Tensor, float_type: torch.finfo) -> None:
        """Raise InputError where one step of a float at a cut changes a weight by a quarter or more."""
        sizes = cut.abs()
        sizes = sizes.where(sizes < math.sqrt(float_type.max), 0)  # rows that are skipped have similarities beyond
        largest = float(sizes.max()) if len(sizes) else 0.0
        if 2 * self.scale * float_type.eps * largest > _MAX_ERROR:
            raise InputError(
                f"similarities around {largest:.3g} at a scale, 1/tau, of {self.scale:g} are too large for "
                f"{float_type.dtype}: neighbouring numbers have quite different weights. Give cosines, or a larger tau"
            )

    def counts(
        self, above: Tensor, mass: Tensor, low: Tensor, log_denominator: Tensor, n_eff: Tensor, usable: Tensor
    ) -> Counts:
        """Return the counts of n rows, all arguments being (n,).

        Args:
            above: number of entries above the cut.
            mass: sum of their exponentials.
            low: sum of all exponentials.
            log_denominator: logarithm of the denominator, in the same units.
            n_eff: effective number of weights.
            usable: bool.
        """
        share = log_denominator.neg().exp_().mul_(self.factor)
        total = (low * share).clamp_(max=self.factor)
        high = torch.minimum(mass * share, total)
        pull = total if self.pull is None else torch.full_like(total, self.pull)
        columns = fill_skipped(torch.stack([above.double(), high, total - high, pull]), usable).to(n_eff.dtype)
        return Counts(columns[0], columns[1], columns[2], columns[3], n_eff.where(usable, torch.nan), ~usable)


@dataclass(frozen=True, eq=False)
class _SoftmaxRowCounts(RowCounts):
    """Sums of whole rows, in units of the exponential of the hardest negative."""

    rule: SoftmaxRule
    whole: WholeRows

    @cached_property
    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """(n,) each: Σ e, Σ e², Σ e (s − hardest), e = exp(scale (s − hardest)).

        The first is added up in the same order as in `counts`: the mass below is 0 where every negative counts.
        """
        E = self.whole.exponentials(self.rule.scale)
        return row_dot(E, torch.ones_like(E[0])), row_dot(E, E), row_dot(E, self.whole.gaps)

    @cached_property
    def n_eff(self) -> Tensor:
        """(n,) (Σ e)² / Σ e²."""
        low, square, _ = self.sums
        return low.square() / square

    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""
        whole, low = self.whole, self.sums[0].double()
        log_denominator = self.rule.log_denominator(low, whole.finite_hardest, whole.query_positives.similarities)
        truth = whole.above(self.rule.cut(eps, whole.finite_hardest, log_denominator))
        above, mass = truth.sum(1), row_dot(truth, whole.exponentials(self.rule.scale))
        return self.rule.counts(above, mass, low, log_denominator, self.n_eff, whole.usable)

    def concentration(self) -> Concentration:
        """Return that of the negatives, from sums: Σ p ln p = Σ p scale (s − hardest) − ln Σ e."""
        (low, _, weighted_gaps), scale = self.sums, self.rule.scale
        share = 1 / low
        entropy = low.log() - weighted_gaps * share * scale
        top5 = exp_(self.whole.largest_gaps.clone(), scale).sum(0).mul_(share).clamp_(max=1)
        columns = torch.stack([self.n_eff, entropy.exp_(), share, top5])
        return Concentration(*columns.where(self.whole.usable, torch.nan).unbind())

    def effects(self, eps: float) -> CountEffects:
        """Return the effect of each candidate: counts less those without it, where all other weights are larger.

        Without candidate c all others grow by 1 / (1 − p_c). Where that is much, those that then are above eps are
        counted; elsewhere their number follows from how many there are just above eps, per unit of log w. All is
        computed in float64 from sums of the others: 1 − p of float32 is rounding where one candidate has nearly all.
        """
        whole, factor = self.whole, self.rule.factor
        hardest, positives = whole.finite_hardest, whole.query_positives.similarities
        log_denominator = self.rule.log_denominator(self.sums[0].double(), hardest, positives)
        log_positive = self.rule.log_denominator(torch.zeros_like(log_denominator), hardest, positives)
        counts, further = self.counts(eps), self.counts(eps * math.exp(_STEP))
        usable, negatives = whole.usable, whole.mask.negatives & whole.usable[:, None]
        E = whole.exponentials(self.rule.scale).double() * negatives
        share = log_denominator.neg().exp().where(usable, 0.0)[:, None]
        own_positive = (log_positive - log_denominator).exp().where(usable, 0.0)[:, None]
        p = E * share
        total = p.sum(1, keepdim=True)
        others = _sums_without(p)
        left = own_positive + others
        nothing = left <= 0  # no weight is left
        left = left.masked_fill(nothing, 1.0)
        total_without = others / left
        mass = (own_positive * p / left).where(~nothing, total)
        truth = whole.above(self.rule.cut(eps, hardest, log_denominator)).double() * negatives
        crossing = ((counts.above - further.above).double() / _STEP)[:, None] * left.log().neg()
        above = truth - crossing
        low = p * (1 - truth)
        below = low.sum(1, keepdim=True)
        below_without = (_sums_without(low) - eps / factor * crossing) / left
        rows, columns = (p > _MUCH).nonzero().unbind(1)
        grown = (p[rows] / left[rows, columns][:, None]).scatter(1, columns[:, None], 0.0)
        inside = grown > eps / factor
        above[rows, columns] = counts.above[rows].double() - inside.sum(1)
        below_without[rows, columns] = (grown * ~inside).sum(1)
        mass_below = below - torch.minimum(below_without.clamp(min=0), total_without)
        only = (counts.above[:, None] > 0) & (counts.above[:, None] - above < 0.5)
        none = (counts.above[:, None] == 0) & (above < -0.5)
        zero = torch.zeros_like(p)
        return CountEffects(
            above=above.where(negatives, zero),
            any_above=only.where(negatives & (truth > 0), zero).to(p.dtype) - none.where(negatives, zero).to(p.dtype),
            mass_above=((mass - mass_below) * factor).where(negatives, 0.0),
            mass_below=(mass_below * factor).where(negatives, 0.0),
            positive=(mass * factor).where(negatives, 0.0) if self.rule.pull is None else zero,
            n_eff=_n_eff_effect(E).where(negatives, 0.0),
        )


def _sums_without(x: Tensor) -> Tensor:
    """(n, c) Σ of a row without each entry; that without the largest is added up, as the others may be tiny."""
    largest = x.argmax(1, keepdim=True)
    others = x.scatter(1, largest, 0.0)
    rest = others.sum(1, keepdim=True)
    return (rest + x.gather(1, largest) - x).scatter(1, largest, rest)


def _n_eff_effect(E: Tensor) -> Tensor:
    """(Σ e)² / Σ e² less that without each entry, (n, c); NaN where no other weight is left."""
    e = E.double()
    total, square = e.sum(1, keepdim=True), e.square().sum(1, keepdim=True)
    without = (total - e).square() / (square - e.square())
    largest = e.argmax(1, keepdim=True)  # next to which all others may be rounding errors
    others = e.scatter(1, largest, 0.0)
    without = without.scatter(1, largest, others.sum(1, keepdim=True).square() / others.square().sum(1, keepdim=True))
    return (total.square() / square - without).where(e > 0, 0.0)


class _SoftmaxAccumulator(TileAccumulator):
    """low, square: (n,) Σ e and Σ e² of the negatives, e = exp(scale (s − reference)).

    reference: (n,) the hardest negative so far. As long as no query is out of range of it, it is one number (`shared`)
    for all queries, so that both directions share their exponentials.
    """

    def __init__(
        self, rule: SoftmaxRule, positives: QueryPositives, eps: Sequence[float], buffers: Buffers, collect: bool
    ) -> None:
        self.rule, self.positives, self.eps, self.buffers = rule, positives, tuple(dict.fromkeys(eps)), buffers
        n, device = len(positives.similarities), positives.similarities.device
        best = positives.best[positives.usable]
        self.shared = float(best.median()) if collect and len(best) else None
        start = torch.finfo(best.dtype).min / 4 if self.shared is None else self.shared
        self.reference = torch.full_like(positives.best, start)
        self.low = torch.zeros(n, dtype=torch.float64, device=device)
        self.square = torch.zeros_like(self.low)
        self.entries = KeptEntries(n) if collect else None
        self.search = EntrySearch()
        self.recounted = {e: (torch.zeros_like(self.low), torch.zeros_like(self.low)) for e in self.eps}

    def _in_range(self, tile: Tensor, shared: float) -> bool:
        """Whether the squares of the exponentials of all hardest negatives of a tile neither over- nor underflow."""
        highest, lowest = self.buffers.maxima_range(tile)
        scale = self.rule.scale
        return (highest - shared) * scale <= _ABOVE and (shared - lowest) * scale <= _BELOW

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        if self.shared is not None and not self._in_range(tile, self.shared):
            self.shared = None  # from here on every query has a reference of its own
            self.reference = self.reference.where(self.low > 0, torch.finfo(self.reference.dtype).min / 4)
        if self.shared is not None:
            E = self.buffers.exponentials(tile, self.rule.scale, self.shared)
            self.low[rows] += self.buffers.sum(E, dim)
            self.square[rows] += self.buffers.sum_of_squares(E, dim)
        else:
            self._add_online(tile, rows, dim)
        if self.entries is not None and not self.entries.full:
            self.entries.add(self._large_entries(tile, self._lower_bound(rows), dim), rows, self._can_count)

    def _large_entries(self, tile: Tensor, cut: Tensor, dim: int) -> LargeEntries:
        """Return the entries of a tile above the cut of their query."""
        entries = self.buffers.at_least(tile, cut, dim, self.search)
        if entries is None:
            return LargeEntries.where(self.buffers.greater(tile, cut.unsqueeze(dim)), tile, dim)
        return entries.above(cut)

    def _add_online(self, tile: Tensor, rows: slice, dim: int) -> None:
        """Add a tile in units of the new hardest negatives, to which the sums are rescaled."""
        before = self.reference[rows]
        reference = torch.maximum(before, self.buffers.maxima(tile, dim))
        E = self._exponentials(tile, reference, dim)
        shrink = ((before.double() - reference.double()) * self.rule.scale).exp()
        self.low[rows] = self.low[rows] * shrink + self.buffers.sum(E, dim)
        self.square[rows] = self.square[rows] * shrink.square() + self.buffers.sum_of_squares(E, dim)
        self.reference[rows] = reference

    def recount(self, tile: Tensor, rows: slice, dim: int) -> None:
        E = self._exponentials(tile, self.reference[rows], dim)
        truth = self.buffers.empty_like(tile, "float truth")
        for eps, (above, mass) in self.recounted.items():
            torch.gt(tile, self._cut(eps, rows).unsqueeze(dim), out=truth)
            above[rows] += self.buffers.sum(truth, dim)
            mass[rows] += self.buffers.sum(truth.mul_(E), dim)

    @property
    def needs_second_pass(self) -> bool:
        return self.entries is None or self.entries.full

    def counts(self, eps: float) -> Counts:
        above, mass = self.recounted[eps] if self.needs_second_pass else self._count_entries(eps)
        n_eff = (self.low.square() / self.square).to(self.reference.dtype)
        log_denominator = self._log_denominator(slice(None))
        return self.rule.counts(above, mass, self.low, log_denominator, n_eff, self.positives.usable)

    def state(self) -> dict[str, Any]:
        queries, similarities = None, None
        if self.entries is not None and not self.needs_second_pass:
            queries, similarities = self.entries.entries(self.reference.device)
        sums = {"reference": self.reference, "low": self.low, "square": self.square, "recounted": self.recounted}
        return {**sums, "queries": queries, "similarities": similarities}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        reference = torch.stack([state["reference"] for state in states]).amax(0)
        shrink = [((state["reference"].double() - reference.double()) * self.rule.scale).exp() for state in states]
        self.low = torch.stack([s["low"] * f for s, f in zip(states, shrink, strict=True)]).sum(0)
        self.square = torch.stack([s["square"] * f.square() for s, f in zip(states, shrink, strict=True)]).sum(0)
        self.reference = reference
        if self.entries is not None:
            self.entries.full = any(state["queries"] is None for state in states)
            self.entries.clear()
            if not self.entries.full:
                parts = (torch.cat([state[name] for state in states]) for name in ("queries", "similarities"))
                self.entries.replace(*parts)

    def merge_second_pass(self, states: Sequence[dict[str, Any]]) -> None:
        for eps in self.recounted:
            parts = [state["recounted"][eps] for state in states]
            self.recounted[eps] = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def keep_all_that_count(self) -> None:
        if self.entries is not None:
            self.entries.may_be_full = False

    def drop_entries(self) -> None:
        if self.entries is not None:
            self.entries.filter(self._can_count)

    def _exponentials(self, tile: Tensor, reference: Tensor, dim: int) -> Tensor:
        E = torch.sub(tile, reference.unsqueeze(dim), out=self.buffers.empty_like(tile))
        return exp_(E, self.rule.scale)

    def _log_denominator(self, rows: slice) -> Tensor:
        return self.rule.log_denominator(self.low[rows], self.reference[rows], self.positives.similarities[rows])

    def _cut(self, eps: float, rows: slice) -> Tensor:
        return self.rule.cut(eps, self.reference[rows], self._log_denominator(rows))

    def _lower_bound(self, rows: slice) -> Tensor:
        """(r,) similarity below which no final cut can be: sums only grow."""
        exact = self.rule.exact_cut(min(self.eps), self.reference[rows], self._log_denominator(rows))
        return (exact - _SLACK * self.reference[rows].abs().clamp(min=1)).to(self.reference.dtype)

    def _can_count(self, queries: Tensor, similarities: Tensor) -> Tensor:
        return similarities > self._lower_bound(slice(None))[queries.long()]

    def _count_entries(self, eps: float) -> tuple[Tensor, Tensor]:
        """(n,) number of kept entries above the cut, and the sum of their exponentials."""
        assert self.entries is not None
        queries, similarities = self.entries.entries(self.reference.device)
        kept = similarities > self._cut(eps, slice(None))[queries.long()]
        queries, similarities = queries[kept].long(), similarities[kept]
        E = ((similarities.double() - self.reference[queries].double()) * self.rule.scale).exp()
        n = len(self.reference)
        return torch.bincount(queries, minlength=n).double(), torch.bincount(queries, weights=E, minlength=n)
