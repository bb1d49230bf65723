"""What does guessing cost: the loss where all similarities are equal, of which objective, at which batch size?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import pair_mask
from lossscope.core.weights import reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

_POWERS = range(1, 18)  # batch sizes 2 to 131,072, where the batch size is not known
_ROWS = 2048  # of a batch whose loss of guessing is computed; that of larger ones follows from it
_LINEAR, _LOGARITHM = 1e-3, 5e-3  # share by which growth of the loss may differ from that of its form
_NOISE = 2e-6  # of a loss in float32, as a share of it


@dataclass(frozen=True)
class Guess:
    """A loss that guessing gives, and what it is called."""

    value: float
    name: str
    is_certain: bool  # whether it follows from the objective and the batch size, which are known
    is_exact: bool = False  # whether it is of an own run, whose reduction is known, too


def equal_losses(objective: Objective, pairs: int, similarity: float = 0.0) -> Tensor | None:
    """(B,) losses of a batch of pairs whose similarities are equal; None where it has none, or states its gradient."""
    try:
        return objective(torch.full((pairs, pairs), similarity), pair_mask(torch.arange(pairs))).values
    except (InputError, RuntimeError):
        return None


def guess_is_logarithm(objective: Objective) -> bool:
    """Return whether guessing among 4 and 8 candidates costs log 4 and log 8."""
    losses = {pairs: equal_losses(objective, pairs) for pairs in (4, 8)}
    return all(x is not None and bool(((x - math.log(pairs)).abs() < 1e-3).all()) for pairs, x in losses.items())


def guess_is_margin(objective: Objective | None) -> bool:
    """Return whether equal similarities cost the margin, once or per negative, whatever they are: a triplet loss."""
    margin = getattr(objective, "margin", None)
    if objective is None or not isinstance(margin, float) or not margin > 0:
        return False
    for pairs, similarity in ((4, 0.0), (8, 0.0), (8, 0.9)):
        losses, costs = equal_losses(objective, pairs, similarity), (margin, margin * (pairs - 1))
        if losses is None or all(float((losses - cost).abs().max()) > 1e-3 * cost for cost in costs):
            return False
    return True


def guesses_of(objective: Objective | None, size: int | None, recipe: object = None) -> Iterator[Guess]:
    """Yield the losses that guessing can give: of mean or sum, of one direction or both.

    Args:
        objective: None where it is not known.
        size: pairs of a batch; None where it is not known.
        recipe: of an own run, whose loss is reduced in a known way.
    """
    if objective is None or size is None:
        yield from _guesses_without(objective, size)
        return
    value = _guess_of_run(objective, size, recipe)
    if value is not None:
        yield Guess(value, f"the loss of equal similarities at batches of {size}", True, True)
        return
    per_query = _guess_per_query(objective, size)
    if per_query is None:
        return
    name = f"log {size}" if abs(per_query - math.log(size)) < 1e-3 else "the loss of equal similarities"
    yield Guess(per_query, name, True)
    yield Guess(2 * per_query, f"2 × {name}", True)
    if guess_is_margin(objective):
        yield from _margins(objective)


def _guesses_without(objective: Objective | None, size: int | None) -> Iterator[Guess]:
    if size is not None:
        yield Guess(math.log(size), f"log {size}", True)
        yield Guess(2 * math.log(size), f"2 × log {size}", True)
    if guess_is_margin(objective):
        yield from _margins(objective)
    elif size is None and not hasattr(objective, "margin"):
        for power in _POWERS:
            yield Guess(power * math.log(2), f"log {2**power:,}", False)
    if objective is None and size is not None:
        yield Guess(math.log(2), "log 2", False)


def _margins(objective: Objective | None) -> Iterator[Guess]:
    margin: float = getattr(objective, "margin")  # noqa: B009
    yield Guess(margin, "the margin", True)
    yield Guess(2 * margin, "2 × the margin", True)


def _guess_per_query(objective: Objective, size: int) -> float | None:
    """Return the mean loss of a query where all similarities are equal; None where that is not known.

    That of a large batch follows from smaller ones, each twice the one before, where it grows by twice as much from
    one to the next (a sum over negatives) or by as much (a logarithm), or is the same. Else it is not known.
    """
    if size <= _ROWS:
        return _equal_loss(objective, size)
    losses = [_equal_loss(objective, rows) for rows in (_ROWS // 4, _ROWS // 2, _ROWS)]
    if None in losses:
        return None
    quarter, half, whole = (float(loss or 0.0) for loss in losses)
    before, growth = half - quarter, whole - half
    if math.isclose(growth, 2 * before, rel_tol=_LINEAR, abs_tol=_NOISE * whole):
        return whole + growth * (size - _ROWS) / (_ROWS - _ROWS // 2)
    if math.isclose(growth, before, rel_tol=_LOGARITHM):
        bend = growth - before  # c log(a + b n) is not yet straight in log n; half as bent at each doubling
        return whole + (growth + bend) * math.log2(size / _ROWS) - bend * (1 - _ROWS / size)
    return None


def _equal_loss(objective: Objective, size: int) -> float | None:
    """Return their mean; None where it is not defined."""
    losses = equal_losses(objective, size)
    return None if losses is None or not float(losses.mean()) > 0 else float(losses.mean())


def _guess_of_run(objective: Objective, size: int, recipe: object) -> float | None:
    """Return the loss that an own run logs where all similarities are equal; None where that is not defined."""
    if not isinstance(recipe, dict) or not recipe:
        return None
    reduction, rows = recipe.get("reduction") or objective.traits.reduction, min(size, _ROWS)
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
    small, large = _guess_per_query(objective, rows), _guess_per_query(objective, size)
    if small is None or large is None:
        return None
    factor = {"sum": size / rows, "cells": (rows - 1) / (size - 1)}.get(reduction, 1.0)  # of R, see reduce_weights
    return float(value) * factor * large / small
