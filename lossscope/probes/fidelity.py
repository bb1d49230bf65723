"""Fidelity: how many of the heaviest negatives make the gradient?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, normalise
from lossscope.core.types import WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.truncation import heaviest, order_of_weight, truncate
from lossscope.objectives.counting.units import require_unit

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View

GRID = tuple(k for power in range(6) for k in sorted({round(base * 10**power) for base in (1.3, 2, 3, 5, 8)}))
"""The k of the curve: 1, 2, 3, 5, 8, 13, 20, 30, 50, 80, 130, ..., 800,000, five a decade."""
_SHOWN = (1, 5, 20)  # k of the statistics
_ROUNDING = 16  # a sum has a direction if it is larger than this many times the rounding error of its terms
_ENTRIES = 1 << 18  # numbers of sums of embeddings at a time
_SPACES = ("similarities", "embeddings", "parameters")


@dataclass(frozen=True)
class Fidelity(Probe):
    """cos(g, g_k), g the gradient and g_k the gradient with the k negatives of a query that have the largest |W| alone.

    The gradient is `of` the similarities of a query (its row of W), of its embedding v on the unit sphere (the part of
    Σ_c W_c t_c perpendicular to v), or of all parameters of the model. For the parameters all queries of a batch keep
    their k heaviest negatives at once, so each batch has a number, and k is measured at 1, 2, 3, 5, 8, 13, 20, 30, 50,
    80, ... alone. Where rows of W sum to 0, the positives of a query pull as hard as the negatives that are kept push;
    otherwise they keep their W, and k = 0 is the positive alone. Of equal weights the most similar are kept. A g_k of
    length 0 has the cosine 0. The cosine may fall again as k grows, so k95 is the smallest k from which on it stays.

    Statistics:
        k95, k95_q50, k95_q90: smallest k from which on the cosine stays at or above the `share` (95 %). Mean, and
            quantiles at 50 and 90 %; for parameters the mean over batches, of the k that are measured.
        eps95: median counted weight of the k95-th heaviest negative: counting at an eps just below it counts k95
            negatives, and those of the same weight. Not of parameters, where weights of queries differ.
        cos1, cos5, cos20: cosine with the 1, 5 and 20 heaviest negatives.
        no_weight: share of queries without a gradient, which the other statistics leave out.

    Raises InputError for a share outside (0, 1), another `of`, or a source without the embeddings or the model.
    """

    of: Literal["similarities", "embeddings", "parameters"] = "similarities"  # what the gradient is taken of
    share: float = 0.95  # cosine that k95 reaches, between 0 and 1
    curve: bool = False  # also the mean cosine for k = 1, 2, 3, 5, 8, 13, 20, 30, 50, 80, ...
    unit: WeightUnit | None = None  # unit of eps95: paper (of one objective), relative (of several) or cosine
    needs_objective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.of not in _SPACES:
            raise InputError(f"of must be similarities, embeddings or parameters; got {self.of!r}")
        if not 0 < self.share < 1:
            raise InputError(f"share must be a number between 0 and 1, as 0.95; got {self.share}")

    @property
    def reads(self) -> frozenset[Reads]:  # type: ignore[override]
        """Rows, and the embeddings or gradients that `of` names."""
        further: dict[str, frozenset[Reads]] = {
            "embeddings": frozenset({"embeddings"}),
            "parameters": frozenset({"gradients"}),
        }
        return frozenset[Reads]({"rows"}) | further.get(self.of, frozenset())

    @property
    def axis(self) -> Axis:  # type: ignore[override]
        """Queries; batches for the parameters, which all queries share."""
        return "batch" if self.of == "parameters" else "query"

    def points(self) -> Mapping[str, tuple[float, ...]]:
        """Return the k of the curve."""
        return {"curve": GRID}

    def tile(self, view: View) -> Accumulators:
        columns = self._of_batch(view) if self.of == "parameters" else self._of_queries(view)
        return {name: Accumulator(value.to(view.W.dtype)) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        percent = f"{100 * self.share:g}"
        of_k = [Statistic(f"k{percent}", "k", "mean", "samples")]
        of_cosines = [Statistic(f"cos{k}", f"cos{k}", "mean", "1") for k in _SHOWN]
        curve = [Statistic("curve", "curve", "curve", "1")] if self.curve else []
        if self.of == "parameters":
            return (*of_k, *of_cosines, *curve)
        return (
            *of_k,
            Statistic(f"k{percent}_q50", "k", "q50", "samples"),
            Statistic(f"k{percent}_q90", "k", "q90", "samples"),
            Statistic(f"eps{percent}", "eps", "q50", "weight"),
            *of_cosines,
            Statistic("no_weight", "no_weight", "mean", "1", is_share=True, within_one=True),
            *curve,
        )

    def check(self, objective: Objective) -> None:
        require_unit(objective, self.unit, "corrected")

    def _of_queries(self, view: View) -> dict[str, Tensor]:
        """Return the columns of queries, (k·q,) each."""
        rows = _SortedRows.of(view)
        cosines = rows.cosines() if self.of == "similarities" else _cosines_of_embeddings(rows, view)
        unknown = cosines.isnan().any(1)
        most = cosines.shape[1] - 1
        k = _stays_from(cosines, self.share)
        counted = view.counted_weights("corrected", self.unit).weights.amax(1)
        eps = counted.gather(1, rows.order.gather(1, (k - 1).clamp(min=0)[:, None]))[:, 0]
        columns = {
            "k": k.double().where(~unknown, torch.nan),
            "eps": eps.double().where(~unknown & (k > 0), torch.nan),
            **{f"cos{shown}": cosines[:, min(shown, most)] for shown in _SHOWN},
            "no_weight": unknown.double(),
        }
        return {**columns, "curve": cosines[:, [min(k, most) for k in GRID]]} if self.curve else columns

    def _of_batch(self, view: View) -> dict[str, Tensor]:
        """Return the columns of the only batch of a view, (1,) each."""
        cosines = _cosines_of_parameters(view)
        known = torch.tensor([list(cosines.values())], dtype=torch.float64)
        k = torch.tensor(list(cosines))[_stays_from(known, self.share)].double()
        most = max(cosines)
        columns = {
            "k": k.where(~known.isnan().any(1), torch.nan),
            **{f"cos{shown}": known.new_tensor([cosines[min(shown, most)]]) for shown in _SHOWN},
        }
        if self.curve:
            columns["curve"] = known.new_tensor([[cosines[min(k, most)] for k in GRID]])
        return columns


def _stays_from(cosines: Tensor, share: float) -> Tensor:
    """Return the first column of each row, (q,), from which on all cosines are at or above the share."""
    after = torch.arange(1, cosines.shape[1] + 1, device=cosines.device)
    return ((cosines < share) * after).amax(1)


@dataclass(frozen=True)
class _SortedRows:
    """Rows of W in float64, each divided by its largest |W| so that squares do not underflow, negatives in order."""

    order: Tensor  # (q, c) columns, negatives first, the heaviest first
    negatives: Tensor  # (q, c) W of the negatives in this order, 0 behind the last
    positives: Tensor  # (q, c) W of the positives in their columns, elsewhere 0
    shares: Tensor  # (q, c) part of the pull that each positive has, elsewhere 0
    sums_to_zero: bool  # whether the positives pull as hard as the kept negatives push

    @classmethod
    def of(cls, view: View) -> _SortedRows:
        """Sort the rows of a view; a row without weight is NaN."""
        mask: Mask = view.rows.mask
        W = view.W.double()
        W = W / W.abs().amax(1, keepdim=True)
        order = order_of_weight(view.W, view.rows.S, mask)
        negatives = (W * mask.negatives).gather(1, order)
        positives = W * mask.positives
        pulls = positives.abs()
        shares = pulls / pulls.sum(1, keepdim=True).clamp(min=torch.finfo(W.dtype).tiny)
        return cls(order, negatives, positives, shares, view.objective.rows_sum_to_zero)

    def all_kept(self) -> Tensor:
        """(q, c + 1) bool: whether the k heaviest, k = 0, ..., c, are all negatives with weight."""
        k = torch.arange(self.negatives.shape[1] + 1, device=self.negatives.device)
        return k >= (self.negatives != 0).sum(1, keepdim=True)

    def cosines(self) -> Tensor:
        """(q, c + 1) cosine of each row and the row with its k heaviest negatives, k = 0, ..., c."""
        squares, pull = _sums_to(self.negatives.square()), self.positives.square().sum(1, keepdim=True)
        whole = squares[:, -1:] + pull
        if self.sums_to_zero:
            push = _sums_to(self.negatives)
            product = squares - push * (self.positives * self.shares).sum(1, keepdim=True)
            square = squares + push.square() * self.shares.square().sum(1, keepdim=True)
        else:
            product = square = squares + pull
        return self.cosine(product, square, whole, 0.0)

    def cosine(self, product: Tensor, square: Tensor, whole: Tensor, least: Tensor | float) -> Tensor:
        """(q, c + 1) product / √(square · whole): 1 where nothing is left out, 0 where g_k has no length.

        Args:
            product: (q, m) g_k·g for k = 0, ..., m − 1; all negatives with weight are kept from there on.
            square: (q, m) |g_k|².
            whole: (q, 1) |g|²; 0 where the cosine is undefined.
            least: |g_k|² that is no more than rounding.
        """
        cosine = (product / (square * whole).sqrt()).where(square > least, 0.0)
        cosine = torch.nn.functional.pad(cosine, (0, self.negatives.shape[1] + 1 - cosine.shape[1]))
        return cosine.where(~self.all_kept(), 1.0).where(whole > 0, torch.nan)

    def take(self, index: Tensor) -> _SortedRows:
        """Return some of the rows."""
        return replace(
            self, order=self.order[index], negatives=self.negatives[index], positives=self.positives[index],
            shares=self.shares[index],
        )  # fmt: skip


def _sums_to(x: Tensor) -> Tensor:
    """Return the sums of the first k entries of each row, k = 0, ..., c: (q, c) -> (q, c + 1)."""
    return _from_0(x.cumsum(1))


def _cosines_of_embeddings(rows: _SortedRows, view: View) -> Tensor:
    """(q, c + 1) cosine of the gradients of a query with all and with k negatives, perpendicular to the query."""
    queries, candidates = view.embeddings()
    number, c, width = queries.shape[1], candidates.shape[1], candidates.shape[2]
    units = normalise(queries.flatten(0, 1))
    index = torch.arange(len(units), device=units.device)
    parts = []
    for part in torch.split(index, max(_ENTRIES // (c * width), 1)):
        first = (part // number * c)[:, None]  # row of the first candidate of the batch of each query
        vectors = candidates.reshape(-1, width)[first + torch.arange(c, device=units.device)].double()
        parts.append(_cosines_on_spheres(rows.take(part), vectors, units[part].double(), units.dtype))
    return torch.cat(parts)


def _cosines_on_spheres(rows: _SortedRows, candidates: Tensor, v: Tensor, precision: torch.dtype) -> Tensor:
    """(q, c + 1) cosine of P g_k and P g, with P x = x − (x·v) v, g_k = C_k + a_k p and C_k = Σ_{j ≤ k} w_j t_j.

    p is the pull of all positives and a_k = 1, or p is their weighted mean and a_k = −Σ_{j ≤ k} w_j where they pull as
    hard as the kept negatives push. Scalar products of C_k, p and v are enough, so C_k is the only large sum.

    Args:
        rows: q sorted rows.
        candidates: (q, c, d) of each row, in its columns.
        v: (q, d) unit queries.
        precision: of the embeddings: a sum that is no larger than their rounding has no direction.
    """
    most = max(int((rows.negatives != 0).sum(1).max()), 1)  # all others add nothing
    w = rows.negatives[:, :most]
    sums = candidates.gather(1, rows.order[:, :most, None].expand(-1, -1, candidates.shape[2]))
    sums.mul_(w[:, :, None]).cumsum_(1)
    g = sums[:, -1] + torch.einsum("qc,qcd->qd", rows.positives, candidates)
    g = g - (g * v).sum(1, keepdim=True) * v
    p = torch.einsum("qc,qcd->qd", rows.shares if rows.sums_to_zero else rows.positives, candidates)
    a = -_sums_to(w) if rows.sums_to_zero else torch.ones_like(_sums_to(w))
    with_g, with_p, with_v = (_from_0(x) for x in (sums @ torch.stack([g, p, v], 2)).unbind(2))
    along = with_v + a * (p * v).sum(1, keepdim=True)
    square = _from_0(torch.einsum("qkd,qkd->qk", sums, sums)) + 2 * a * with_p + a.square() * _square(p)
    product = with_g + a * (p * g).sum(1, keepdim=True)
    terms = rows.negatives.abs().sum(1, keepdim=True) + rows.positives.abs().sum(1, keepdim=True)
    rounding = max(_ROUNDING * torch.finfo(precision).eps ** 2, torch.finfo(terms.dtype).eps)  # of squares
    least = _ROUNDING * rounding * terms.square()
    whole = _square(g)
    return rows.cosine(product, square - along.square(), whole.where(whole > least, 0.0), least)


def _square(x: Tensor) -> Tensor:
    return x.square().sum(1, keepdim=True)


def _from_0(x: Tensor) -> Tensor:
    """Return numbers of k = 1, 2, ... with a 0 for k = 0 before them."""
    return torch.nn.functional.pad(x, (1, 0))


def _cosines_of_parameters(view: View) -> dict[int, float]:
    """Return k -> cosine of the gradients of all parameters with all and with k negatives of each query.

    The last k is the largest number of negatives with weight.
    """
    gradients, mask = view.rows.gradients, view.rows.mask
    if gradients is None:
        raise InputError(
            "fidelity:of=parameters needs the model itself, which this source does not have; use a checkpoint, or "
            "of=embeddings"
        )
    if not view.shape.has_all_queries or view.shape.batches != 1:
        raise InputError(
            f"fidelity:of=parameters needs a batch in one piece; a batch of {view.shape.candidates} candidates comes "
            "in several. Use a smaller --batch-size"
        )
    W, sums_to_zero = view.W, view.objective.rows_sum_to_zero
    largest = W.abs().max()
    W = W / largest.clamp(min=torch.finfo(W.dtype).tiny)  # a cosine has no scale
    most = int(((W != 0) & mask.negatives).sum(1).max())

    def gradient(G: Tensor) -> Tensor:
        return torch.cat([vector.double() for vector in gradients.vectors(G).values()])

    whole = gradient(W)
    length = float(whole.norm())
    if not length > 0:
        return {0: torch.nan}
    cosines = {}
    for k in (0, *(k for k in GRID if k < most)):
        if k == 0 and (sums_to_zero or most == 0):
            cosines[k] = float(most == 0)
            continue
        kept = gradient(truncate(W, mask, heaviest(W, view.rows.S, mask, k), sums_to_zero))
        lengths = length * float(kept.norm())
        cosines[k] = float(kept @ whole) / lengths if lengths > 0 else 0.0
    return {**cosines, most: 1.0}
