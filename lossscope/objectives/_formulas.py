"""Formulas that several objectives share."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.core.similarity import REPEATS, Mask


def mask_invalid(S: Tensor, mask: Mask) -> Tensor:
    """Return S, detached, with 0 on entries that are not valid, so that NaN there has no effect.

    Half precision becomes float32, where exponentials and counts are exact enough; other types stay. The result must
    not be changed in place: it may share memory with S.
    """
    wide = S.float() if S.dtype in (torch.float16, torch.bfloat16) else S
    return wide.detach() if mask.all_valid else wide.detach().masked_fill(~mask.valid, 0)


def cross_entropy(logits: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """(q,) −log softmax(logits)[+] over the valid candidates, and (q, c) its gradient, softmax − match.

    On the positive the gradient is minus the sum of the others: 1 − p₊ would be a rounding error where p₊ is nearly 1.
    """
    if not mask.all_valid:
        logits = logits.masked_fill(~mask.valid, -torch.inf)
    log_p = logits.log_softmax(1) if logits.is_contiguous() else logits.T.log_softmax(0).T  # does not copy a transpose
    log_p_pos = log_p.gather(1, mask.first_positive)
    p = log_p.exp_().scatter_(1, mask.first_positive, 0.0)
    return log_p_pos[:, 0].neg(), p.scatter_(1, mask.first_positive, p.sum(1, keepdim=True).neg_())


def repeat_positive(logits: Tensor, mask: Mask) -> tuple[Tensor, Tensor | None]:
    """Return logits whose softmax counts the positive 1 + r times, s₊ + log(1 + r), and log(1 + r), (q,).

    r is `info["repeats"]` of the mask, which most batches do not have: they stay as they are, and log(1 + r) is None.
    """
    repeats = mask.info.get(REPEATS)
    if repeats is None:
        return logits, None
    more = repeats.to(logits.dtype).log1p()
    return logits.scatter_add(1, mask.first_positive, more[:, None]), more


def positive_of(S: Tensor, mask: Mask) -> Tensor:
    """Return the similarity of the first positive of each row, (q, 1)."""
    return S.gather(1, mask.first_positive)


def hardest_negative(S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Return the similarity and the column of the hardest negative, (q, 1); the first of equal ones (E11)."""
    _, column = (S.detach().contiguous() + mask.negative_bias).max(1, keepdim=True)
    return S.gather(1, column), column
