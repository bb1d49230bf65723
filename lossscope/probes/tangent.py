"""Tangent: how much of the gradient turns a vector on the unit sphere, and how much is radial?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, ReducerName, Statistic
from .views.view import View

_ROUNDING = 16  # a sum has a direction if it is larger than this many times the rounding error of its terms
_OVER: dict[str, ReducerName] = {"": "mean", "_q10": "q10", "_q50": "q50", "_q90": "q90"}
_BOUND = Statistic("bound_17", "bound_17", "mean", "norm")


@dataclass(frozen=True)
class Tangent(Probe):
    """|g − (g·v) v| for every query v, g = dL/dv = Σ_c W_c t_c, and radial = |g·v| / |g|.

    Only this tangent part of g turns v; normalising v again removes the part along v. `of=candidate` gives the same for
    each candidate t, with h = dL/dt = Σ_q W_qc v_q over the queries of the batch; `of=hardest` for the hardest negative
    t of each query, with h = W_qt v_q of this query alone: |W_qt| |v_q| sin θ(v_q, t), eq. (12) and (18), which goes to
    0 as v·t goes to 1. W is the gradient of the summed query losses.

    Statistics:
        tangent, candidate_tangent, hardest_tangent: norm of the tangent part; mean, and quantiles at 10, 50 and 90 %.
        radial, candidate_radial, hardest_radial: |g·v| / |g|; NaN where g is no larger than the rounding errors of its
            terms.
        bound_17: Σ_c |W_c| |P(t_c − t₊)| + |Σ_c W_c| |P t₊| with P x = x − (x·v) v and t₊ the best positive; queries
            only. For losses of differences s_n − s₊ with one positive this is eq. (17) as printed. It adds the norms of
            the terms that eq. (14) adds, and is never below the exact norm.

    Raises InputError where the source has similarities only, and for another `of`.
    Source: Li et al. 2022 (Unified loss), eq. 11 and 14-18.
    """

    of: Literal["query", "candidate", "hardest"] = "query"  # vectors to measure
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "embeddings"})
    needs_objective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.of not in ("query", "candidate", "hardest"):
            raise InputError(f"of must be query, candidate or hardest; got {self.of!r}")

    @property
    def axis(self) -> Axis:  # type: ignore[override]
        """Candidates, or queries: each has one hardest negative."""
        return "candidate" if self.of == "candidate" else "query"

    def tile(self, view: View) -> Accumulators:
        queries, candidates = view.embeddings()
        W = view.W.reshape(len(queries), -1, candidates.shape[1])
        if self.of == "query":
            columns = _tangent_and_radial(torch.bmm(W, candidates), queries, W.abs().sum(2))
            columns["bound_17"] = _bound(view, W, queries, candidates)
            return {name: Accumulator(value.flatten()) for name, value in columns.items()}
        if self.of == "hardest":
            columns = _of_hardest(view.extremes.column.clamp(min=0).view(len(W), -1), W, queries, candidates)
            return {name: Accumulator(value.flatten()) for name, value in columns.items()}
        return {
            "gradient": Accumulator(torch.bmm(W.transpose(1, 2), queries), "sum"),
            "terms": Accumulator(W.abs().sum(1), "sum"),
            "candidates": Accumulator(candidates.clone(), "max"),  # each view has all candidates
        }

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        sums = {name: part.value for name, part in accumulators.items()}
        if self.of != "candidate":
            return sums
        columns = _tangent_and_radial(sums["gradient"], sums["candidates"], sums["terms"])
        return {name: value.flatten() for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (*_statistics(""), _BOUND) if self.of == "query" else _statistics(f"{self.of}_")


def _statistics(prefix: str) -> tuple[Statistic, ...]:
    tangent = (Statistic(f"{prefix}tangent{suffix}", "tangent", reducer, "norm") for suffix, reducer in _OVER.items())
    return (*tangent, Statistic(f"{prefix}radial", "radial", "mean", "1"))


def _tangent_and_radial(gradient: Tensor, vectors: Tensor, terms: Tensor) -> dict[str, Tensor]:
    """Return the columns tangent and radial, (k, n).

    Args:
        gradient: (k, n, d).
        vectors: (k, n, d), at which the gradient is taken.
        terms: (k, n) Σ |W| of the terms of the gradient.
    """
    unit = normalise(vectors)
    along = (gradient * unit).sum(2)
    length = gradient.norm(dim=2)
    has_direction = length > _ROUNDING * torch.finfo(length.dtype).eps * terms
    return {
        "tangent": (gradient - along[:, :, None] * unit).norm(dim=2),
        "radial": (along.abs() / length).where(has_direction, torch.nan),
    }


def _of_hardest(column: Tensor, W: Tensor, queries: Tensor, candidates: Tensor) -> dict[str, Tensor]:
    """Return tangent and radial of W_qn v_q at the hardest negative n, |W_qn|, cosine of v_q and n; (k, q) each.

    Args:
        column: (k, q) of the hardest negative.
        W: (k, q, c).
        queries: (k, q, d).
        candidates: (k, c, d).
    """
    hardest, w = _select(candidates, column), W.gather(2, column[:, :, None])
    return {
        **_tangent_and_radial(w * queries, hardest, w.abs().squeeze(2)),
        "weight": w.abs().squeeze(2),
        "similarity": (normalise(queries) * normalise(hardest)).sum(2),
    }


def _bound(view: View, W: Tensor, queries: Tensor, candidates: Tensor) -> Tensor:
    """(k, q) eq. (17), with |P(t_c − t₊)|² = |t_c − t₊|² − ((t_c − t₊)·v)².

    In float64, from candidates minus their mean: the root of a rounding error of 6e-8 would be 2e-4 a term, in the term
    of t₊ itself, which is 0, too.
    """
    best, dtype = _best_positive(view).view(len(W), -1), W.dtype
    W, queries, candidates = W.double(), queries.double(), candidates.double()
    centred = candidates - candidates.mean(1, keepdim=True)
    squares, unit = centred.square().sum(2), queries / queries.norm(dim=2, keepdim=True)
    products = torch.bmm(_select(centred, best), centred.transpose(1, 2))
    distances = squares[:, None, :] + squares.gather(1, best)[:, :, None] - 2 * products
    S = torch.bmm(unit, centred.transpose(1, 2))
    along = S - S.gather(2, best[:, :, None])
    terms = (distances - along.square()).clamp(min=0).sqrt().scatter(2, best[:, :, None], 0.0)
    positive = _select(candidates, best)
    remainder = (positive - (positive * unit).sum(2, keepdim=True) * unit).norm(dim=2)
    bound: Tensor = (W.abs() * terms).sum(2) + W.sum(2).abs() * remainder
    return bound.to(dtype)


def _select(vectors: Tensor, rows: Tensor) -> Tensor:
    """Return the vectors (k, q, d) at rows (k, q) of the vectors (k, c, d)."""
    return vectors.gather(1, rows[:, :, None].expand(-1, -1, vectors.shape[2]))


def _best_positive(view: View) -> Tensor:
    """(k·q,) column of the best positive; any column in a row without a positive, whose W is 0."""
    rows = view.rows
    if rows.mask.first_row_with_two_positives is None:
        return rows.mask.first_positive.flatten()
    return rows.S.masked_fill(~rows.mask.positives, -torch.inf).argmax(1)
