"""W = dL/dS: the gradient that an objective makes of similarities, for one direction and for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from .foreign_arrays import to_tensor
from .pair import Pair
from .types import REDUCTIONS, Reduction

if TYPE_CHECKING:
    from .similarity import Mask

_SMALL = 256  # rows up to which reading a matrix by columns costs less than a copy of it


@dataclass(frozen=True)
class Weights:
    """W = d(Σ_q l_q)/dS of one direction, rows are queries; W < 0 pulls, W > 0 pushes."""

    W: Tensor  # (q, c) gradient of the SUMMED query losses with respect to the cosine S: with 1/tau, without 1/B
    values: Tensor | None  # (q,) losses; None where the gradient is stated directly
    usable: Tensor  # (q,) bool, rows with a positive and a negative; all others have W = 0 and value 0
    number_usable: int | None = None  # how many rows are usable, if that is known already


@dataclass(frozen=True)
class BatchLoss:
    """What training needs of a batch: its loss and the gradient of the loss."""

    value: Tensor | None  # ()
    gradient: Tensor  # (images, captions), d value / d S


def both(objective: Any, S: Tensor, mask: Mask | Pair[Mask]) -> Pair[Weights]:
    """Return the Weights of both directions of S (images, captions); t2i has S transposed."""
    from .similarity import both_masks

    masks, S = both_masks(mask), to_tensor(S, "S")
    return Pair(objective(S, masks.i2t), objective(S.T, masks.t2i))


def reduce_weights(weights: Pair[Weights], directions: float, reduction: Reduction, pairs: int) -> BatchLoss:
    """directions · (R(i2t) + R(t2i)): return the training loss of a batch and its gradient with respect to S.

    Args:
        weights: of both directions.
        directions: factor on each direction.
        reduction: R, over the queries: `sum`; `mean` over the usable ones; `pairs`, the sum / B; `cells`, the sum /
            2 B (B − 1), so that both directions make the mean over all pairs of query and negative.
        pairs: B.

    Raises:
        InputError: for another reduction.
    """
    to_i2t, to_t2i = (directions * reduction_scale(w, reduction, pairs) for w in weights)
    first, second = weights.i2t, weights.t2i
    transposed = second.W.T if len(second.W) <= _SMALL else second.W.T.contiguous()  # no copy if it is contiguous
    gradient = torch.add(first.W, transposed, alpha=to_t2i / to_i2t)
    if to_i2t != 1:
        gradient.mul_(to_i2t)
    if first.values is None or second.values is None:
        return BatchLoss(None, gradient)
    if to_i2t == to_t2i and len(first.values) == len(second.values):
        return BatchLoss((first.values + second.values).sum() * to_i2t, gradient)
    return BatchLoss(first.values.sum() * to_i2t + second.values.sum() * to_t2i, gradient)


def backward(S: Tensor, G: Tensor, scale: float | Tensor = 1.0, extra_loss: Tensor | None = None) -> None:
    """Backpropagate G = dL/dS through the graph of S: this is the whole of training.

    Args:
        S: (images, captions), with its graph.
        G: (images, captions).
        scale: factor on G and on the extra loss.
        extra_loss: (), a loss of the model itself, backpropagated with S.
    """
    scaled = G if isinstance(scale, float) and scale == 1 else G * scale
    if extra_loss is None:
        torch.autograd.backward(S, scaled.to(S.dtype))
    else:
        torch.autograd.backward([S, extra_loss], [scaled.to(S.dtype), torch.ones_like(extra_loss) * scale])


def reduction_scale(weights: Weights, reduction: Reduction, pairs: int) -> float:
    """Return the factor on a sum over queries: 1, 1 / usable queries, 1 / B, or 1 / 2 B (B − 1), B = `pairs`.

    Raises InputError for another reduction.
    """
    if reduction == "sum":
        return 1.0
    if reduction == "mean":
        return 1 / max(int(weights.usable.sum()) if weights.number_usable is None else weights.number_usable, 1)
    if reduction == "pairs":
        return 1 / max(pairs, 1)
    if reduction == "cells":
        return 1 / max(2 * pairs * (pairs - 1), 1)
    raise InputError(f"reduction must be one of {', '.join(REDUCTIONS)}; got {reduction!r}")
