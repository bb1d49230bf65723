"""The self-similarity polynomial loss: two parabolas, one of the positive and one of the hardest negative."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
MORE = [
    "ssp:clamp=sum",
    "ssp:margin=2",
    "ssp:margin=2,clamp=sum,n0=-0.3",
    "ssp:margin=0,p2=0.5,p1=-1,p0=0.2,n2=0.3,n1=0.1,n0=0",
]


def rows(S: Array, match: Array, valid: Array, margin: float) -> list[tuple[int, int, int]]:
    """(query, its positive, its hardest negative: the first one if several are equal) of every query with a loss."""
    result = []
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            p, n = positives[0], max(negatives, key=lambda c: (S[q, c], -c))
            if S[q, n] + margin > S[q, p] and S[q, p] < 1 - 1e-5:
                result.append((q, p, n))
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    p2: float = 0.2,
    p1: float = -0.7,
    p0: float = 0.5,
    n2: float = 0.9,
    n1: float = -0.4,
    n0: float = 0.03,
    margin: float = 0.2,
    clamp: str = "parts",
) -> Array:
    loss = np.zeros(len(S))
    for q, p, n in rows(S, match, valid, margin):
        pull = p2 * S[q, p] ** 2 + p1 * S[q, p] + p0
        push = n2 * S[q, n] ** 2 + n1 * S[q, n] + n0
        loss[q] = max(0.0, pull) + max(0.0, push) if clamp == "parts" else max(0.0, pull + push)
    return loss


def weights(
    S: Array,
    match: Array,
    valid: Array,
    p2: float = 0.2,
    p1: float = -0.7,
    p0: float = 0.5,
    n2: float = 0.9,
    n1: float = -0.4,
    n0: float = 0.03,
    margin: float = 0.2,
    clamp: str = "parts",
) -> Array:
    """The slopes 2 p2 s₊ + p1 and 2 n2 n + n1, where the clamped polynomial is above 0."""
    W = np.zeros_like(S)
    for q, p, n in rows(S, match, valid, margin):
        pull = p2 * S[q, p] ** 2 + p1 * S[q, p] + p0
        push = n2 * S[q, n] ** 2 + n1 * S[q, n] + n0
        if clamp == "sum":
            pull = push = pull + push
        W[q, p] = 2 * p2 * S[q, p] + p1 if pull > 0 else 0.0
        W[q, n] = 2 * n2 * S[q, n] + n1 if push > 0 else 0.0
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with |W| above eps, and the sum of their |W|."""
    W = np.abs(weights(S, match, valid, **hyper))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
