"""BFAN, one pair and one query at a time; attention is kept by comparing all context elements with each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def scores(
    images: Tensor, captions: Sequence[Tensor], focal: str, sharpness: float, clip: str = "leaky", tie: float = 1e-5
) -> Tensor:
    """S (n, m) from unit vectors: images (n, R, D), each caption (W, D)."""
    S = torch.zeros(len(images), len(captions), dtype=images.dtype)
    for i, image in enumerate(images):
        for j, caption in enumerate(captions):
            S[i, j] = relevance(caption, image, focal, sharpness, clip, tie) + relevance(
                image, caption, focal, sharpness, clip, tie
            )
    return S


def relevance(query: Tensor, context: Tensor, focal: str, sharpness: float, clip: str, tie: float) -> Tensor:
    """Mean cosine of the queries with their final attended vectors."""
    s = query @ context.T
    s = torch.where(s > 0, s, 0 * s if clip == "hard" else 0.1 * s)
    s = s / (s.pow(2).sum(0, keepdim=True).sqrt() + 1e-8)
    total = torch.zeros((), dtype=query.dtype)
    for i in range(len(query)):
        e = (sharpness * s[i]).exp()
        a = renormalise(e / e.sum(), focal, tie)
        v = (a[:, None] * context).sum(0)
        total = total + (query[i] * v).sum() / (query[i].norm() * v.norm()).clamp(min=1e-8)
    return total / len(query)


def is_kept(a: Tensor, focal: str, tie: float = 0.0) -> list[bool]:
    """Return the elements that are more relevant than the others by more than a tie, by the paper's double sum."""
    result = []
    for j in range(len(a)):
        total = 0.0
        for k in range(len(a)):
            total += float(a[j] - (1 + tie) * a[k]) * (float(a[k]) ** 0.5 if focal == "prob" else 1.0)
        result.append(total > 0)
    return result


def renormalise(a: Tensor, focal: str, tie: float) -> Tensor:
    """The attention renormalised over the kept elements; unchanged if none is kept."""
    H = torch.tensor(is_kept(a, focal, tie), dtype=a.dtype)
    return a if not H.any() else H * a / (H * a).sum()
