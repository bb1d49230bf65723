"""The decoupled contrastive loss: the positive is not in its own denominator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "dcl:tau=0.01",
    "dcl:tau=1",
]


def sides(match: Array, valid: Array) -> list[tuple[int, int, list[int]]]:
    """(query, its positive, its negatives) of every query that has both."""
    result = []
    for q in range(len(match)):
        positives = [c for c in range(match.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(match.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives[0], negatives))
    return result


def values(S: Array, match: Array, valid: Array, tau: float = 0.1) -> Array:
    loss = np.zeros(len(S))
    for q, p, negatives in sides(match, valid):
        loss[q] = -math.log(math.exp(S[q, p] / tau) / sum(math.exp(S[q, n] / tau) for n in negatives))
    return loss


def weights(S: Array, match: Array, valid: Array, tau: float = 0.1) -> Array:
    W = np.zeros_like(S)
    for q, p, negatives in sides(match, valid):
        total = sum(math.exp(S[q, n] / tau) for n in negatives)
        W[q, p] = -1 / tau
        for n in negatives:
            W[q, n] = math.exp(S[q, n] / tau) / total / tau
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, tau: float = 0.1
) -> tuple[Array, Array]:
    """Negatives with W above eps, and the sum of their W."""
    W = weights(S, match, valid, tau)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
