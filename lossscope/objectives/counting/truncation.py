"""Which negatives of a row are kept, and what becomes of its gradient without the others?"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask


def heaviest(W: Tensor, S: Tensor, mask: Mask, k: int, of_equal: Literal["first", "last"] = "first") -> Tensor:
    """Return (q, c) bool: the k negatives of each row with the largest |W|; all of a row that has fewer.

    Of equal weights, as those of a hinge, the most similar negatives are taken; of equal similarities the first or the
    last columns.

    Args:
        W: (q, c) dL/dS.
        S: (q, c).
        mask: of S.
        k: number of negatives.
        of_equal: columns to take where weight and similarity are equal.
    """
    order = order_of_weight(W, S, mask)
    if of_equal == "last":  # the same order, from the mirrored columns
        flipped = replace(mask, match=mask.match.flip(1), valid=mask.valid.flip(1), info={})
        order = S.shape[1] - 1 - order_of_weight(W.flip(1), S.flip(1), flipped)
    return torch.zeros_like(mask.match).scatter_(1, order[:, :k], True) & mask.negatives


def order_of_weight(W: Tensor, S: Tensor, mask: Mask) -> Tensor:
    """Return (q, c) the columns of each row, heaviest negative first; entries that are no negatives come last."""
    similar = S.detach().masked_fill(mask.non_negatives, -torch.inf).argsort(stable=True, dim=1, descending=True)
    sizes = W.detach().abs().masked_fill(mask.non_negatives, -1.0).gather(1, similar)
    return similar.gather(1, sizes.argsort(stable=True, dim=1, descending=True))


def truncate(W: Tensor, mask: Mask, kept: Tensor, rows_sum_to_zero: bool) -> Tensor:
    """Return (q, c) W with 0 on the negatives that are not kept.

    Where rows of W sum to 0, each negative pulls the positives as hard as it is pushed, so what is left out pulls no
    more: the positives of a row share minus the sum of what is kept, in proportion to their |W|. Otherwise positives
    keep their W. A row from which nothing is left out is W itself, to the bit.

    Args:
        W: (q, c) dL/dS.
        mask: of S.
        kept: (q, c) bool, which negatives are kept.
        rows_sum_to_zero: whether the objective says so of its rows.
    """
    left_out = mask.negatives & ~kept
    truncated = W.masked_fill(left_out, 0)
    if not rows_sum_to_zero:
        return truncated
    pulls = W.abs() * mask.positives
    shares = pulls / pulls.sum(1, keepdim=True).clamp(min=torch.finfo(W.dtype).tiny)
    kept_sum = truncated.masked_fill(mask.positives, 0).sum(1, keepdim=True)
    changed = (left_out & (W != 0)).any(1, keepdim=True) & mask.positives
    return torch.where(changed, -kept_sum * shares, truncated)
