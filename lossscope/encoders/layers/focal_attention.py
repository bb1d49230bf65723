"""Focal attention: what is less relevant than the rest is dropped, and the others are attended to anew (BFAN)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Focal = Literal["equal", "prob"]
Decide = Callable[[Tensor, Tensor], Tensor]  # (p,) context items, (p,) query items -> H of these pairs, (p, C, Q)
TIE = 1e-5  # relative difference of attention that rounding in float32 can cause
EXACT_TIE = 1e-12  # the same in float64
_DOUBT = 5e-5  # relative distance of attention from the threshold below which float32 may decide wrongly
_PAIRS = 64  # pairs that are decided anew at a time


def focus_attention(
    a: Tensor, focal: Focal, lengths: Tensor, present_queries: Tensor | None = None, decide: Decide | None = None
) -> Tensor:
    """a' = H a / Σ_j H a, (k, C, Q, q).

    An element that exceeds the threshold by rounding error only is dropped: with one query, all similarities above 0
    become 1, and so the attention to several elements becomes equal. Where H keeps nothing, a stays unchanged.

    Args:
        a: attention, (k, C, Q, q).
        focal: the condition of H.
        lengths: (k,) number of present context elements.
        present_queries: (q, Q) bool; None for all.
        decide: H of some pairs in float64, for those with attention near the threshold; None to leave them as they are.
    """
    with torch.no_grad():
        threshold = threshold_of(a, focal, lengths)
        keep = a > threshold * (1 + TIE)
        if decide is not None:
            doubtful = (a - threshold).abs_() <= _DOUBT * threshold
            if present_queries is not None:
                doubtful &= present_queries.T
            _decide_anew(keep, doubtful.flatten(1, 2).any(1).nonzero(), decide)
        keep |= ~keep.any(1, keepdim=True)
    kept = a * keep
    return kept / kept.sum(1, keepdim=True)


def threshold_of(a: Tensor, focal: Focal, lengths: Tensor) -> Tensor:
    """Return what an element must exceed, (k, 1, 1, 1) or (k, 1, Q, q): 1/L, or Σ_k a_k^1.5 / Σ_k a_k^0.5."""
    if focal == "equal":
        return (1 / lengths.to(a.dtype))[:, None, None, None]
    root = a.sqrt()
    return (a * root).sum(1, keepdim=True) / root.sum(1, keepdim=True)


def _decide_anew(keep: Tensor, pairs: Tensor, decide: Decide) -> None:
    """Replace H of (p, 2) pairs of a context item and a query item, in place."""
    for part in torch.split(pairs, _PAIRS):
        items, queries = part.unbind(1)
        keep[items, :, :, queries] = decide(items, queries)
