"""Which positive of several does a loss of one positive compare: the hardest, a random one, or each in turn?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from lossscope.core.foreign_arrays import to_tensor
from lossscope.core.similarity import Mask
from lossscope.core.weights import Weights

Taken = Literal["hardest", "random", "all"]
_SEED = 0  # of the order in which columns are drawn


def over_positives(loss: Callable[[Tensor, Mask], Weights], S: Tensor, mask: Mask, taken: Taken | None) -> Weights:
    """Weights of a loss of one positive, on rows with several; the positives that it does not compare are left out.

    `hardest` is the positive of least similarity, the first of equal ones. `random` takes the positive whose column
    comes first in a fixed random order of columns: batches are shuffled. `all` is the mean over the positives of a row.

    Args:
        loss: S (q, c), mask -> weights, of rows with one positive.
        S: (q, c) similarities.
        mask: of S.
        taken: None leaves the mask as it is, and the loss refuses rows with several positives.
    """
    S = to_tensor(S, "S")
    if taken is None or mask.first_row_with_two_positives is None:
        return loss(S, mask)
    if taken == "hardest":
        column = S.detach().masked_fill(~mask.positives, torch.inf).argmin(1, keepdim=True)
        return loss(S, _only(mask, column))
    if taken == "random":
        order = torch.randperm(S.shape[1], generator=torch.Generator().manual_seed(_SEED)).to(S.device)
        column = order.expand_as(S).masked_fill(~mask.positives, S.shape[1]).argmin(1, keepdim=True)
        return loss(S, _only(mask, column))
    return _mean_over_positives(loss, S, mask)


def _mean_over_positives(loss: Callable[[Tensor, Mask], Weights], S: Tensor, mask: Mask) -> Weights:
    """Return the mean of the weights of each positive of a row alone."""
    number = mask.positives.sum(1)
    rank = mask.positives.cumsum(1)
    parts = []
    for k in range(1, int(number.max()) + 1):
        column = ((rank == k) & mask.positives).to(torch.uint8).argmax(1, keepdim=True)
        parts.append(loss(S, _only(mask, column, number >= k)))  # 0 in rows with fewer positives
    times = number.clamp(min=1).to(parts[0].W.dtype)
    W = torch.stack([part.W for part in parts]).sum(0)
    values = torch.stack([part.values for part in parts if part.values is not None]).sum(0)
    return Weights(W / times[:, None], values / times, mask.usable)


def _only(mask: Mask, column: Tensor, rows: Tensor | None = None) -> Mask:
    """Return the mask with one positive a row, at column (q, 1); the other positives are not valid.

    Args:
        mask: with several positives.
        column: of the positive that stays.
        rows: (q,) bool, rows that keep a positive; None: all that have one.
    """
    kept = torch.zeros_like(mask.match).scatter_(1, column, mask.positives.any(1, keepdim=True))
    kept &= mask.positives if rows is None else mask.positives & rows[:, None]
    return replace(mask, match=kept, valid=mask.valid & (~mask.match | kept))
