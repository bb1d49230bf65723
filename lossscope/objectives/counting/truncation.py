"""Which negatives of a row are kept, and what becomes of its gradient without the others?"""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.core.similarity import Mask


def by_weight(W: Tensor, mask: Mask) -> Tensor:
    """Return (q, c) columns of each row: its negatives by decreasing |W|, of equal ones the first; then all others."""
    sizes = W.abs().masked_fill(mask.non_negatives, -1.0)
    return sizes.contiguous().argsort(stable=True, dim=1, descending=True)


def heaviest(W: Tensor, mask: Mask, k: int) -> Tensor:
    """Return (q, c) bool: the k negatives of each row with the largest |W|, of equal ones the first; all if fewer."""
    kept = torch.zeros_like(mask.match).scatter_(1, by_weight(W, mask)[:, :k], True)
    return kept & mask.negatives


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
