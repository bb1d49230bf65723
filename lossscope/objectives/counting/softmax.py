"""Counting rule of a softmax: exponentials of the negatives over their sum, with or without the positive in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountEffects, Counts
from lossscope.core.row_ops import LN2, exp_, row_dot
from lossscope.errors import InputError

from .block import Block
from .concentration import Concentration
from .fold import CountFold, Fold, Keep, RowCounts, fill_skipped
from .kept_entries import KeptEntries
from .large_entries import EntrySearch
from .rows import QueryPositives, WholeRows

_ABOVE, _BELOW = 36.0, 30.0  # exponents whose squares, and 200,000 of them together, stay well within float32
_SCALES = (1e-6, 1e6)  # 1/scale and scale · similarity still have the digits that a weight needs
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

    def fold(self, positives: QueryPositives, eps: Sequence[float], keep: Keep = "some") -> CountFold:
        """Return what is kept: sums of exponentials, and entries."""
        return _SoftmaxFold(self, positives, tuple(dict.fromkeys(eps)), keep)

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


class _Sums(NamedTuple):
    """Σ e and Σ e² of the negatives of each query, e = exp(scale (s − reference))."""

    shared: float | None  # the reference of all queries, while it is one number
    reference: Tensor  # (n,)
    low: Tensor  # (n,) float64
    square: Tensor  # (n,) float64

    def plus(self, other: _Sums, scale: float, rows: slice = slice(None)) -> _Sums:
        """Return the sums over both, of some queries, in units of the larger reference."""
        if self.shared is not None and self.shared == other.shared:
            low, square = self.low[rows] + other.low[rows], self.square[rows] + other.square[rows]
            return _Sums(self.shared, self.reference[rows], low, square)
        a, b = (_Sums(sums.shared, *(x[rows] for x in sums[1:])) for sums in (self, other))
        first, second = a._own_reference(), b._own_reference()
        reference = torch.maximum(first, second)
        f, g = (((x.double() - reference.double()) * scale).exp() for x in (first, second))
        return _Sums(None, reference, a.low * f + b.low * g, a.square * f.square() + b.square * g.square())

    def _own_reference(self) -> Tensor:
        """(n,) reference of each query; the lowest where nothing was added yet."""
        lowest = torch.finfo(self.reference.dtype).min / 4
        return self.reference if self.shared is None else self.reference.where(self.low > 0, lowest)


class _SoftmaxFold(CountFold):
    """The sums of exponentials, and the entries that can still count.

    As long as no query is out of range of it, the reference is one number for all queries, so that both directions
    share their exponentials.
    """

    def __init__(self, rule: SoftmaxRule, positives: QueryPositives, eps: tuple[float, ...], keep: Keep) -> None:
        self.rule, self.positives, self.eps, self.keep = rule, positives, eps, keep
        best = positives.best[positives.usable]
        self.shared = float(best.median()) if len(best) and keep != "none" else None
        low = torch.finfo(best.dtype).min / 4
        self.reference = torch.full_like(positives.best, low if self.shared is None else self.shared)  # at first
        self.begin()

    def begin(self, known: _Sums | None = None) -> None:
        self.before = known  # sums of earlier blocks
        reference = self.reference.clone() if self.shared is None else self.reference
        low, square = torch.zeros(2, len(reference), dtype=torch.float64, device=reference.device).unbind()
        self.sums = _Sums(self.shared, reference, low, square)
        self.entries, self.search = KeptEntries(len(reference), self.keep), EntrySearch()
        self.recounted: _Counted | None = None

    def add(self, block: Block) -> None:
        shared, scale, rows = self.sums.shared, self.rule.scale, block.rows
        if shared is not None and not self._in_range(block, shared):  # from here on every query has its own reference
            self.sums = self.sums._replace(shared=None, reference=self.sums._own_reference().clone())
        if self.sums.shared is not None:
            E = block.tile.exponentials(scale, self.sums.shared)
            self.sums.low[rows] += block.sum(E)
            self.sums.square[rows] += block.sum_of_squares(E)
        else:
            self._add_online(block)
        if not self.entries.full:
            found = block.entries_above(self._lower_bound(rows), self.search)
            self.entries.add(found, rows, self._can_count)

    def _in_range(self, block: Block, shared: float) -> bool:
        """Whether the squares of the exponentials of all hardest negatives of a tile neither over- nor underflow."""
        highest, lowest = block.tile.maxima_range
        return (highest - shared) * self.rule.scale <= _ABOVE and (shared - lowest) * self.rule.scale <= _BELOW

    def _add_online(self, block: Block) -> None:
        """Add a block in units of the new hardest negatives, to which the sums are rescaled."""
        rows, scale, (_, references, low, square) = block.rows, self.rule.scale, self.sums
        before = references[rows]
        reference = torch.maximum(before, block.max())
        E = block.exponentials(scale, reference)
        shrink = ((before.double() - reference.double()) * scale).exp()
        low[rows] = low[rows] * shrink + block.sum(E)
        square[rows] = square[rows] * shrink.square() + block.sum_of_squares(E)
        references[rows] = reference

    def merge(self, later: _SoftmaxFold) -> None:
        self.sums = self.sums.plus(later.sums, self.rule.scale)
        self.entries.merge(later.entries, self._can_count)

    def known(self) -> _Sums:
        return self.sums._replace(square=self.sums.low)  # squares bound nothing: no memory is held for them

    def numbers(self) -> dict[str, Any]:
        return {**self.sums._asdict(), "entries": self.entries.numbers(self.sums.low.device)}

    def load(self, numbers: Mapping[str, Any]) -> None:
        self.sums = _Sums(*(numbers[name] for name in _Sums._fields))
        self.entries.load(numbers["entries"])

    def again(self) -> _RecountFold | None:
        return _RecountFold(self) if self.entries.full else None

    def finish(self, second: _RecountFold) -> None:
        self.recounted = second.counted

    def counts(self, eps: float) -> Counts:
        sums, usable = self.sums, self.positives.usable
        above, mass = self._count_entries(eps) if self.recounted is None else self.recounted[eps]
        n_eff = (sums.low.square() / sums.square).to(sums.reference.dtype)
        return self.rule.counts(above, mass, sums.low, self._log_denominator(sums), n_eff, usable)

    def cut(self, eps: float) -> Tensor:
        """(n,) similarity above which an entry counts."""
        return self.rule.cut(eps, self.sums.reference, self._log_denominator(self.sums))

    def _log_denominator(self, sums: _Sums, rows: slice = slice(None)) -> Tensor:
        """(r,) logarithm of the denominator, in units of the exponential of the reference; sums are of the rows."""
        return self.rule.log_denominator(sums.low, sums.reference, self.positives.similarities[rows])

    def _lower_bound(self, rows: slice = slice(None)) -> Tensor:
        """(r,) similarity below which no final cut can be: sums of these and of earlier blocks only grow."""
        if self.before is not None:
            sums = self.sums.plus(self.before, self.rule.scale, rows)
        else:
            sums = _Sums(self.sums.shared, *(x[rows] for x in self.sums[1:]))
        exact = self.rule.exact_cut(min(self.eps), sums.reference, self._log_denominator(sums, rows))
        return (exact - _SLACK * sums.reference.abs().clamp(min=1)).to(sums.reference.dtype)

    def _can_count(self, queries: Tensor, similarities: Tensor) -> Tensor:
        return similarities > self._lower_bound()[queries.long()]

    def _count_entries(self, eps: float) -> tuple[Tensor, Tensor]:
        """(n,) number of kept entries above the cut, and the sum of their exponentials."""
        reference = self.sums.reference
        queries, similarities = self.entries.entries(reference.device)
        kept = similarities > self.cut(eps)[queries.long()]
        queries, similarities = queries[kept].long(), similarities[kept]
        E = ((similarities.double() - reference[queries].double()) * self.rule.scale).exp()
        n = len(reference)
        return torch.bincount(queries, minlength=n).double(), torch.bincount(queries, weights=E, minlength=n)


_Counted = dict[float, tuple[Tensor, Tensor]]  # eps -> (n,) entries above the cut, and the sum of their exponentials


class _RecountFold(Fold):
    """The entries above the cuts that the sums of a first pass give."""

    kept = ("counted",)

    def __init__(self, first: _SoftmaxFold) -> None:
        self.scale, self.reference = first.rule.scale, first.sums.reference
        self.cuts = {eps: first.cut(eps) for eps in first.eps}
        self.begin()

    def begin(self, known: Any = None) -> None:
        zeros = partial(torch.zeros_like, self.reference, dtype=torch.float64)
        self.counted: _Counted = {eps: (zeros(), zeros()) for eps in self.cuts}

    def add(self, block: Block) -> None:
        rows = block.rows
        E = block.exponentials(self.scale, self.reference[rows])
        for eps, (above, mass) in self.counted.items():
            truth = block.above(self.cuts[eps][rows], "float truth")
            above[rows] += block.sum(truth)
            mass[rows] += block.sum(truth.mul_(E))

    def merge(self, later: _RecountFold) -> None:
        pairs = zip(self.counted.items(), later.counted.values(), strict=True)
        self.counted = {eps: (above + a, mass + m) for (eps, (above, mass)), (a, m) in pairs}
