"""The multi-class N-pair loss, log(1 + Σ exp(scale (s_n − s₊))) term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "npair:scale=16",
    "npair:scale=100",
]


def terms(S: Array, match: Array, valid: Array, scale: float) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> (its positive, negative -> exp(scale (s_n − s₊)))."""
    result = {}
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            p = positives[0]
            result[q] = (p, {n: math.exp(scale * (S[q, n] - S[q, p])) for n in negatives})
    return result


def values(S: Array, match: Array, valid: Array, scale: float = 1.0) -> Array:
    loss = np.zeros(len(S))
    for q, (_, e) in terms(S, match, valid, scale).items():
        loss[q] = math.log(1 + sum(e.values()))
    return loss


def weights(S: Array, match: Array, valid: Array, scale: float = 1.0) -> Array:
    W = np.zeros_like(S)
    for q, (p, e) in terms(S, match, valid, scale).items():
        for n in e:
            W[q, n] = scale * e[n] / (1 + sum(e.values()))
            W[q, p] -= W[q, n]
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, scale: float = 1.0
) -> tuple[Array, Array]:
    """Negatives with W above eps, and the sum of their W."""
    W = weights(S, match, valid, scale)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
