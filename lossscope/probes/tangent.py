"""Tangent: how strongly does the gradient turn a vector on its sphere, and how much of it only presses outwards?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Reads, Reducer, Statistic
from .views.view import View

_ROUNDING = 16  # a sum this many times the rounding of its terms has a direction
_OVER: dict[str, Reducer] = {"": "mean", "_q10": "q10", "_q50": "q50", "_q90": "q90"}
_BOUND = Statistic("bound_17", "bound_17", "mean", "norm")


@dataclass(frozen=True)
class Tangent:
    """|g − (g·v) v| for every query v, g = dL/dv = Σ_c W_c t_c, and radial = |g·v| / |g|.

    Only this part of g turns v; what is along v is lost when v is made unit length again. `of=candidate`: the same of
    every candidate t, with h = dL/dt = Σ_q W_qc v_q, over the queries of the batch. W is of the summed query losses.
    radial is NaN where g is no more than the rounding of its terms.
    bound_17 = Σ_c |W_c| |P(t_c − t₊)| + |Σ_c W_c| |P t₊| with P x = x − (x·v) v and t₊ the best positive: of losses of
    differences with one positive this is eq. (17) as printed, which adds the norms of terms where eq. (14) adds the
    terms; it is never below the exact norm. Queries only.
    Source: Li et al. 2022 (Unified loss), eq. 11 and 14-18.
    Raises InputError where the source has similarities only, and for another `of`.
    """

    of: Literal["query", "candidate"] = "query"
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "embeddings"})
    needs_objective: ClassVar[bool] = True
    cheap: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.of not in ("query", "candidate"):
            raise InputError(f"of must be query or candidate; got {self.of!r}")

    @property
    def axis(self) -> Axis:
        """What it has a number for."""
        return self.of

    def tile(self, view: View) -> Accumulators:
        queries, candidates = view.embeddings()
        W = view.W.reshape(len(queries), -1, candidates.shape[1])
        if self.of == "query":
            found = _turning(torch.bmm(W, candidates), queries, W.abs().sum(2))
            found["bound_17"] = _bound(view, W, queries, candidates)
            return {name: Accumulator(value.flatten()) for name, value in found.items()}
        return {
            "gradient": Accumulator(torch.bmm(W.transpose(1, 2), queries), "sum"),
            "terms": Accumulator(W.abs().sum(1), "sum"),
            "candidates": Accumulator(candidates.clone(), "max"),  # the same in every view of the batch
        }

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        found = {name: part.value for name, part in accumulators.items()}
        if self.of == "query":
            return found
        turning = _turning(found["gradient"], found["candidates"], found["terms"])
        return {name: value.flatten() for name, value in turning.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (*_told(""), _BOUND) if self.of == "query" else _told("candidate_")

    def check(self, objective: Objective) -> None:
        """Any W has a gradient."""


def _told(name: str) -> tuple[Statistic, ...]:
    """Statistics whose names begin with that."""
    turning = (Statistic(f"{name}tangent{suffix}", "tangent", reducer, "norm") for suffix, reducer in _OVER.items())
    return (*turning, Statistic(f"{name}radial", "radial", "mean", "1"))


def _turning(gradient: Tensor, vectors: Tensor, terms: Tensor) -> dict[str, Tensor]:
    """(k, n) tangent and radial of gradients (k, n, d) at vectors; terms: (k, n) Σ |W| that they are sums of."""
    unit = normalise(vectors)
    along = (gradient * unit).sum(2)
    length = gradient.norm(dim=2)
    sure = length > _ROUNDING * torch.finfo(length.dtype).eps * terms
    return {
        "tangent": (gradient - along[:, :, None] * unit).norm(dim=2),
        "radial": (along.abs() / length).where(sure, torch.nan),
    }


def _bound(view: View, W: Tensor, queries: Tensor, candidates: Tensor) -> Tensor:
    """(k, q) eq. (17). |P(t_c − t₊)|² = |t_c − t₊|² − ((t_c − t₊)·v)², the first of candidates around their mean, which
    keeps the digits of close ones."""
    best = _best_positive(view).view(len(W), -1)
    around = candidates - candidates.mean(1, keepdim=True)
    squares = around.square().sum(2)
    own = squares.gather(1, best)[:, :, None]
    apart = squares[:, None, :] + own - 2 * torch.bmm(_taken(around, best), around.transpose(1, 2))
    lengths = queries.norm(dim=2, keepdim=True)
    S = view.rows.S.reshape(W.shape)
    along = (S - S.gather(2, best[:, :, None])) / lengths
    terms = (apart - along.square()).clamp(min=0).sqrt()
    positive, unit = _taken(candidates, best), queries / lengths
    lone = (positive - (positive * unit).sum(2, keepdim=True) * unit).norm(dim=2)
    found: Tensor = (W.abs() * terms).sum(2) + W.sum(2).abs() * lone
    return found


def _taken(vectors: Tensor, rows: Tensor) -> Tensor:
    """(k, q, d) some of the vectors (k, c, d) of each batch."""
    return vectors.gather(1, rows[:, :, None].expand(-1, -1, vectors.shape[2]))


def _best_positive(view: View) -> Tensor:
    """(k·q,) column of the best positive; any column in a row without one, whose W is 0."""
    rows = view.rows
    if rows.mask.first_row_with_two_positives is None:
        return rows.mask.first_positive.flatten()
    return rows.S.masked_fill(~rows.mask.positives, -torch.inf).argmax(1)
