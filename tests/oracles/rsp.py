"""The relative-similarity polynomial loss: a hinge on a polynomial of hardest negative minus positive."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
MORE = [
    "rsp:margin=0.5",
    "rsp:a1=1,a2=0.8,a3=0.4",
    "rsp:margin=0,a1=0.5,a2=0,a3=2",
    "rsp:a1=-0.3,a2=3",
]


def rows(S: Array, match: Array, valid: Array) -> list[tuple[int, int, int]]:
    """(query, its positive, its hardest negative: the first one if several are equal) of every query that has both."""
    result = []
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives[0], max(negatives, key=lambda c: (S[q, c], -c))))
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    a1: float = 1.0,
    a2: float = 0.0,
    a3: float = 0.0,
) -> Array:
    loss = np.zeros(len(S))
    for q, p, n in rows(S, match, valid):
        x = S[q, n] - S[q, p]
        loss[q] = max(0.0, a1 * x + a2 * x**2 + a3 * x**3 + margin)
    return loss


def weights(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    a1: float = 1.0,
    a2: float = 0.0,
    a3: float = 0.0,
) -> Array:
    W = np.zeros_like(S)
    for q, p, n in rows(S, match, valid):
        x = S[q, n] - S[q, p]
        if a1 * x + a2 * x**2 + a3 * x**3 + margin > 0:
            W[q, n] = a1 + 2 * a2 * x + 3 * a3 * x**2
            W[q, p] = -W[q, n]
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with |W| above eps, and the sum of their |W|."""
    W = np.abs(weights(S, match, valid, **hyper))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
