"""W = dL/dS: what an objective makes of similarities, for one direction and for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from lossscope.errors import InputError

from .pair import Pair

if TYPE_CHECKING:
    from .similarity import Mask

Reduction = Literal["sum", "mean", "pairs", "cells"]
REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean", "pairs", "cells")
_SMALL = 256  # rows up to which reading a matrix by columns costs less than a copy of it


@dataclass(frozen=True)
class Weights:
    """One direction, rows are queries.

    W: (q, c) gradient of the SUMMED query losses with respect to the cosine S: with 1/tau, without 1/B.
    W < 0 pulls, W > 0 pushes. values: (q,) losses, None when the gradient is stated directly.
    usable: (q,) bool, rows that had a positive and a negative; the others have W = 0 and value 0. number: how many
    they are, where that is known already.
    """

    W: Tensor
    values: Tensor | None
    usable: Tensor
    number: int | None = None


@dataclass(frozen=True)
class BatchLoss:
    """What training needs of a batch: value () or None, and G = d value / d S, (images, captions)."""

    value: Tensor | None
    gradient: Tensor


def both(objective: Any, S: Tensor, mask: Mask | Pair[Mask]) -> Pair[Weights]:
    """The objective in both directions: S (images, captions) -> Pair of Weights (t2i has S transposed)."""
    from .similarity import both_masks

    masks = both_masks(mask)
    return Pair(objective(S, masks.i2t), objective(S.T, masks.t2i))


def reduce_weights(weights: Pair[Weights], directions: float, reduction: Reduction, pairs: int) -> BatchLoss:
    """The training loss of a batch, `directions * (R(i2t) + R(t2i))`, and its gradient with respect to S.

    R = sum over the queries (`sum`), mean over the usable ones (`mean`), sum / B with B = `pairs` (`pairs`), or
    sum / 2 B (B − 1), so that both directions make the mean over all pairs of query and negative (`cells`).
    Raises InputError for another reduction.
    """
    to_i2t, to_t2i = (directions * reduction_scale(w, reduction, pairs) for w in weights)
    first, second = weights.i2t, weights.t2i
    turned = second.W.T if len(second.W) <= _SMALL else second.W.T.contiguous()  # no copy where it is already
    gradient = torch.add(first.W, turned, alpha=to_t2i / to_i2t)
    if to_i2t != 1:
        gradient.mul_(to_i2t)
    if first.values is None or second.values is None:
        return BatchLoss(None, gradient)
    if to_i2t == to_t2i and len(first.values) == len(second.values):
        return BatchLoss((first.values + second.values).sum() * to_i2t, gradient)
    return BatchLoss(first.values.sum() * to_i2t + second.values.sum() * to_t2i, gradient)


def backward(S: Tensor, G: Tensor, scale: float | Tensor = 1.0, further: Tensor | None = None) -> None:
    """Send G = dL/dS, (images, captions), on into whatever made S: this is the whole of training.

    further: a loss of the model itself, (), that goes back with it.
    """
    scaled = G if isinstance(scale, float) and scale == 1 else G * scale
    if further is None:
        torch.autograd.backward(S, scaled.to(S.dtype))
    else:
        torch.autograd.backward([S, further], [scaled.to(S.dtype), torch.ones_like(further) * scale])


def reduction_scale(weights: Weights, reduction: Reduction, pairs: int) -> float:
    """The factor that makes a sum over queries the reduction: 1, 1 / usable queries, 1 / B, or 1 / 2 B (B − 1)."""
    if reduction == "sum":
        return 1.0
    if reduction == "mean":
        return 1 / max(int(weights.usable.sum()) if weights.number is None else weights.number, 1)
    if reduction == "pairs":
        return 1 / max(pairs, 1)
    if reduction == "cells":
        return 1 / max(2 * pairs * (pairs - 1), 1)
    raise InputError(f"reduction must be one of {', '.join(REDUCTIONS)}; got {reduction!r}")
