"""The unified loss, (1/gamma) log(1 + Σ exp(gamma (s_n − s₊ + margin))) term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "unified:gamma=5,margin=0",
    "unified:gamma=50,margin=0.1",
]


def terms(S: Array, match: Array, valid: Array, margin: float, gamma: float) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> (its positive, negative -> exp(gamma (s_n − s₊ + margin)))."""
    result = {}
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            p = positives[0]
            result[q] = (p, {n: math.exp(gamma * (S[q, n] - S[q, p] + margin)) for n in negatives})
    return result


def values(S: Array, match: Array, valid: Array, margin: float = 0.2, gamma: float = 60.0) -> Array:
    loss = np.zeros(len(S))
    for q, (_, e) in terms(S, match, valid, margin, gamma).items():
        loss[q] = math.log(1 + sum(e.values())) / gamma
    return loss


def weights(S: Array, match: Array, valid: Array, margin: float = 0.2, gamma: float = 60.0) -> Array:
    W = np.zeros_like(S)
    for q, (p, e) in terms(S, match, valid, margin, gamma).items():
        for n in e:
            W[q, n] = e[n] / (1 + sum(e.values()))
            W[q, p] -= W[q, n]
    return W


def counted_weights(
    S: Array,
    match: Array,
    valid: Array,
    eps: float,
    convention: str,
    direction: str,
    margin: float = 0.2,
    gamma: float = 60.0,
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, margin, gamma)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
