"""What is the loss where all similarities are equal, and where they are perfect? Evaluate the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.types import Reduction
from lossscope.core.weights import reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

_ROWS = 2048  # largest batch whose guessing loss is computed; the loss of larger batches follows from it
_QUERIES = 8  # queries in layouts other than pairs, where all queries are alike
_CANDIDATES = 1 << 17  # candidates of a query in these layouts, at most
_FAR = -100.0  # a similarity that no cosine has
_LINEAR, _LOGARITHM = 1e-3, 5e-3  # relative difference allowed between the growth of a loss and of its form
_NOISE = 2e-6  # relative noise of a loss in float32


@dataclass(frozen=True)
class Layout:
    """How many candidates a query has: its positive, the positives of others, and negatives from elsewhere."""

    pairs: int
    mined: int = 0  # negatives of each query, which are candidates of all queries
    queue: int = 0  # candidates of earlier batches
    views: bool = False  # two views of each item in one set: each view is a query, all others are its candidates

    @property
    def candidates(self) -> int:
        """B, or B (1 + mined) + queue; 2 B − 1 for two views."""
        return (2 * self.pairs - 1 if self.views else self.pairs * (1 + self.mined)) + self.queue

    @property
    def name(self) -> str:
        """`log N`, N the number of candidates, and where they come from."""
        where = "two views of each item" if self.views else ""
        where = f"{self.mined} mined negatives a query" if self.mined else where
        where = f"a queue of {self.queue:,}" if self.queue else where
        return f"log {self.candidates:,}" + (f" ({where})" if where else "")


@dataclass(frozen=True)
class Levels:
    """Mean loss of a query in three situations."""

    guess: float  # all similarities are 0
    perfection: float  # the positive is at 1, others at 0
    apart: float  # the positive is at 1, others at −1: no vectors can do better


def loss_levels(objective: Objective, layout: Layout) -> Levels | None:
    """Return the losses of an objective in a layout; None if it has no loss or does not take the layout."""
    guess = perfection = apart = None
    if layout.candidates <= _CANDIDATES:
        guess = _mean(equal_losses(objective, layout))
        perfection, apart = (_mean(perfect_losses(objective, layout, value)) for value in (0.0, -1.0))
    if guess is None or perfection is None or apart is None:
        return None
    return Levels(guess, perfection, apart)


def equal_losses(objective: Objective, layout: Layout, similarity: float = 0.0) -> Tensor | None:
    """Return the loss of each query where all similarities are equal; None without a loss."""
    return _losses(objective, layout, lambda match: torch.full(match.shape, similarity))


def perfect_losses(objective: Objective, layout: Layout, others: float = 0.0, positive: float = 1.0) -> Tensor | None:
    """Return the loss of each query with its positive at `positive` and all others at `others`; None without a loss."""
    return _losses(objective, layout, lambda match: torch.where(match, positive, others))


def _losses(objective: Objective, layout: Layout, fill: object) -> Tensor | None:
    mask = _mask(layout)
    try:
        return objective(fill(mask.match), mask).values  # type: ignore[operator]
    except (InputError, RuntimeError):
        return None


def _mask(layout: Layout) -> Mask:
    """Return the mask of a batch of pairs, else of a few queries with all their candidates."""
    if layout.candidates == layout.pairs:
        return pair_mask(torch.arange(layout.pairs))
    queries = min(_QUERIES, layout.candidates)
    match = torch.eye(queries, layout.candidates, dtype=torch.bool)
    return Mask(match, torch.ones_like(match))


def _mean(losses: Tensor | None) -> float | None:
    return None if losses is None else float(losses.mean())


def is_logarithm(objective: Objective) -> bool:
    """Return whether guessing among 4 and 8 candidates has the loss log 4 and log 8, as with a softmax."""
    losses = {pairs: equal_losses(objective, Layout(pairs)) for pairs in (4, 8)}
    return all(x is not None and bool(((x - math.log(pairs)).abs() < 1e-3).all()) for pairs, x in losses.items())


def is_margin(objective: Objective | None) -> bool:
    """Return whether equal similarities of any size cost the margin, once or per negative, as in a triplet loss."""
    margin = getattr(objective, "margin", None)
    if objective is None or not isinstance(margin, float) or not margin > 0:
        return False
    for pairs, similarity in ((4, 0.0), (8, 0.0), (8, 0.9)):
        losses, costs = equal_losses(objective, Layout(pairs), similarity), (margin, margin * (pairs - 1))
        if losses is None or all(float((losses - cost).abs().max()) > 1e-3 * cost for cost in costs):
            return False
    return True


def is_unreachable(objective: Objective) -> bool:
    """Return whether a hinge stays active for any vectors: even with positives at 1 and all negatives at −1.

    A hinge costs the same for each negative, or counts the hardest alone, and costs nothing if negatives are far away.
    """
    few, many = (loss_levels(objective, Layout(pairs)) for pairs in (8, 16))
    if not isinstance(getattr(objective, "margin", None), float) or few is None or many is None or few.apart <= 0:
        return False
    is_per_negative = math.isclose(many.apart / few.apart, 15 / 7, rel_tol=1e-3)
    far = _mean(perfect_losses(objective, Layout(8), _FAR))
    return far == 0 and (is_per_negative or math.isclose(many.apart, few.apart, rel_tol=1e-3))


def guess_of_query(objective: Objective, size: int) -> float | None:
    """Return the mean loss of a query among pairs with equal similarities; None if it is unknown.

    The loss of a large batch follows from three smaller batches, each twice as large as the last. It is known if the
    second doubling adds twice as much as the first (a sum over negatives), as much (a logarithm) or nothing.
    """
    if size <= _ROWS:
        return _positive(_mean(equal_losses(objective, Layout(size))))
    losses = [_positive(_mean(equal_losses(objective, Layout(rows)))) for rows in (_ROWS // 4, _ROWS // 2, _ROWS)]
    if None in losses:
        return None
    quarter, half, whole = (float(loss or 0.0) for loss in losses)
    before, growth = half - quarter, whole - half
    if math.isclose(growth, 2 * before, rel_tol=_LINEAR, abs_tol=_NOISE * whole):
        return whole + growth * (size - _ROWS) / (_ROWS - _ROWS // 2)
    if math.isclose(growth, before, rel_tol=_LOGARITHM):
        bend = growth - before  # c log(a + b n) is not yet straight in log n; each doubling halves the bend
        return whole + (growth + bend) * math.log2(size / _ROWS) - bend * (1 - _ROWS / size)
    return None


def _positive(loss: float | None) -> float | None:
    return loss if loss is not None and loss > 0 else None


def guess_of_run(objective: Objective, size: int, reduction: Reduction | None) -> float | None:
    """Return the loss that a run of lossscope logs where all similarities are equal; None if it is undefined.

    Args:
        objective: of the run.
        size: pairs of a batch.
        reduction: of the recipe; None: that of the objective.
    """
    reduction, rows = reduction or objective.traits.reduction, min(size, _ROWS)
    S, mask = torch.zeros(rows, rows), pair_mask(torch.arange(rows))
    try:
        both = Pair(objective(S, mask), objective(S, mask.t()))
    except InputError:
        return None
    value = reduce_weights(both, objective.traits.directions, reduction, rows).value
    if value is None or not float(value) > 0:
        return None
    if rows == size:
        return float(value)
    small, large = guess_of_query(objective, rows), guess_of_query(objective, size)
    if small is None or large is None:
        return None
    factor = {"sum": size / rows, "cells": (rows - 1) / (size - 1)}.get(reduction, 1.0)  # of R, see reduce_weights
    return float(value) * factor * large / small
