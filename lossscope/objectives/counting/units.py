"""The unit of counted weights: w of the paper, |W| / saturated |W|, or |W| itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.types import Convention, WeightUnit
from lossscope.errors import InputError, UnsupportedLoss
from lossscope.registry import short_spec

from ..base import Objective
from .softmax import SoftmaxRule

_OTHER_UNITS = (
    "Objectives of several names are counted in it unless another unit is named: dL/ds itself, --unit cosine, in "
    "Python probes=('cocos:unit=cosine',), or that of each paper, --unit paper"
)
_LEAST = 1e-3  # of its largest weight that a loss must have at saturation, for that weight to be a unit
_NEAR, _APART = 1e-4, 3.0  # how far from saturation, and how many times as large, a weight may be to be a unit
_NOISE = 0.01  # of vectors of a trial batch of views
_POINTS = 9  # along each side of the grid on which the largest weight is measured


def answer_unit(objectives: Iterable[Objective]) -> WeightUnit:
    """Return `paper` for objectives of a single name, whatever their parameters; for several names a unit of all.

    Two papers may count the same function in different units: of one positive, supcon:tau=0.05 is ntxent:tau=0.05, and
    its paper counts dL/ds, that of ntxent the softmax. That unit is `relative`, and `cosine` (dL/ds itself) where a
    loss among them, such as smoothap, has no saturated weight.
    """
    objectives = list(objectives)
    if len({type(objective) for objective in objectives}) <= 1:
        return "paper"
    return "relative" if all(map(_saturates, objectives)) else "cosine"


def _saturates(objective: Objective) -> bool:
    try:
        return saturated_weight(objective) > 0
    except InputError:  # also of a loss that W does not describe, whose own error comes where weights are counted
        return False


def resolve_unit(objective: Objective, unit: WeightUnit | None) -> WeightUnit:
    """Return the unit that weights are counted in: a loss that no paper counts has no `paper`, and is `relative`.

    None is the unit of an answer about this objective alone.
    """
    return objective.traits.own_unit if unit in (None, "paper") else unit


def unit_factor(objective: Objective, unit: WeightUnit | None) -> float | None:
    """Return weight in the unit / counted weight of the paper; None where it differs between entries.

    Raises InputError where the unit is `relative` and the objective has no saturated weight.
    """
    unit = resolve_unit(objective, unit)
    if unit == "paper":
        return 1.0
    if objective.paper_scale is None:
        return None
    return objective.paper_scale / (saturated_weight(objective) if unit == "relative" else 1.0)


def largest_weight(objective: Objective, unit: WeightUnit | None) -> float | None:
    """Return what no counted weight exceeds: the factor of a softmax, in the unit; None where nothing is known.

    Raises InputError where the unit is `relative` and the softmax has no saturated weight.
    """
    rule = objective.counting_rule
    if not isinstance(rule, SoftmaxRule):
        return None
    factor = unit_factor(objective, unit)
    return None if factor is None else rule.factor * factor


def require_unit(objective: Objective, unit: WeightUnit | None, convention: Convention) -> None:
    """Raise InputError unless the objective has weights in the unit; a published convention is in the paper's own."""
    if unit not in (None, "paper") and convention != "corrected":
        raise InputError(
            f"unit must be paper for the weights of a published convention; got {unit} with convention {convention}"
        )
    if resolve_unit(objective, unit) == "relative":
        _ = saturated_weight(objective)


def weights_in_unit(objective: Objective, W: Tensor, mask: Mask, unit: WeightUnit | None) -> CountedWeights:
    """Return |W|, (q, c), in the unit `cosine`, or divided by the saturated weight in the unit `relative`."""
    weights = W.abs()
    return counted_from_weights(weights / saturated_weight(objective) if unit == "relative" else weights, mask)


def saturated_weight(objective: Objective) -> float:
    """|dL/ds₋| of a query with two candidates at s₊ = −1, s₋ = +1: 1/tau for a softmax, 1 for a hinge.

    It is measured, so a softmax has 1/tau · (1 − p₊), which differs from 1/tau by e^(−2/tau).

    Raises InputError where that is no scale of the loss: 0, not finite, or far below its largest weight.
    """
    weight = _require_scale(cast(Hashable, objective))
    may_have_changed = objective.traits.own_unit == "relative"  # as a user's loss
    return _weight_at(objective, 1.0) if may_have_changed else weight


def _weight_at(objective: Objective, end: float) -> float:
    """|dL/ds₋| of a query with two candidates at s₊ = −end, s₋ = end, as the loss is now."""
    with torch.inference_mode(False):
        s = torch.full((1,), end, dtype=torch.float64)
        return abs(float(_negative_weights(objective, -s, s)))


@lru_cache(maxsize=256)
def _require_scale(key: Hashable) -> float:
    """Return the saturated weight of an objective, a frozen dataclass. Raises InputError where it has none."""
    objective = cast(Objective, key)
    if objective.depends_on_batch_size:
        raise InputError(
            "weights in the unit relative need a loss that adds or averages over queries; "
            f"{short_spec(objective)} averages over all pairs of a batch. Its weights shrink as batches grow. "
            f"Multiply it by the batch size. {_OTHER_UNITS}"
        )
    try:
        weight, near = _weight_at(objective, 1.0), _weight_at(objective, 1 - _NEAR)
    except UnsupportedLoss:
        raise
    except InputError as error:
        raise InputError(
            f"weights in the unit relative need a loss that runs on two pairs, their trial batch; {error}. "
            f"{_OTHER_UNITS}"
        ) from error
    with torch.inference_mode(False):
        steps = torch.linspace(-1, 1, _POINTS, dtype=torch.float64)
        s_pos, s_neg = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="xy"))
        largest = float(_negative_weights(objective, s_pos, s_neg).abs().max())
    saturates = weight > 0 and near / _APART < weight < near * _APART
    if not (saturates and _LEAST * largest <= weight < torch.inf):
        raise InputError(
            "weights in the unit relative need a loss whose weight saturates. That of "
            f"{short_spec(objective)} is {weight:.3g} at s₊ = −1, s₋ = +1, {near:.3g} near there and up to "
            f"{largest:.3g} elsewhere. {_OTHER_UNITS}"
        )
    return weight


def _negative_weights(objective: Objective, s_pos: Tensor, s_neg: Tensor) -> Tensor:
    """W of the negatives of a query, (q,), at s₊ and s₋ (q,): of two candidates, or of two views of two items.

    Two views of two items have vectors with the similarities [[1, s₊], [s₊, 1]] ⊗ [[1, s₋], [s₋, 1]] for any s₊ and s₋.
    """
    if not getattr(objective, "needs_one_set", False):
        return two_candidate_weights(objective, s_pos, s_neg)[:, 1]
    match = torch.eye(4, dtype=torch.bool).roll(2, 0)
    mask = Mask(match, ~torch.eye(4, dtype=torch.bool))
    noise = _NOISE * torch.randn(4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unit, weights = torch.ones((), dtype=torch.float64), []
    for positive, negative in zip(s_pos, s_neg, strict=True):
        views, items = (torch.stack([unit, s, s, unit]).reshape(2, 2) for s in (positive, negative))
        S = torch.kron(views, items)
        values, vectors = torch.linalg.eigh(S)
        X = torch.nn.functional.pad(vectors * values.clamp(min=0).sqrt(), (0, 4))
        X = torch.nn.functional.normalize(X + noise, dim=1)  # similarities differ, so that they are found
        weights.append(objective(S, replace(mask, info={"queries": X, "candidates": X})).W[0, [1, 3]].sum())
    return torch.stack(weights)


def two_candidate_weights(objective: Objective, s_pos: Tensor, s_neg: Tensor) -> Tensor:
    """W of queries with one positive (column 0) and one negative (column 1): (q,), (q,) -> (q, 2).

    For an objective that takes whole batches, or whose rows influence each other, it is W of the first query of the two
    pairs [[s₊, s₋], [s₋, s₊]], one call a point.
    """
    if objective.coupled:
        pairs = pair_mask(torch.arange(2))
        batches = torch.stack([s_pos, s_neg, s_neg, s_pos], dim=1).reshape(-1, 2, 2)
        return torch.stack([objective(S, pairs).W[0] for S in batches])
    match = torch.zeros(len(s_pos), 2, dtype=torch.bool)
    match[:, 0] = True
    return objective(torch.stack([s_pos, s_neg], dim=1), Mask(match, torch.ones_like(match))).W
