"""Binomial deviance, pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "binomial_deviance:cost=1",
    "binomial_deviance:alpha=40,beta=0.3,cost=2",
]


def sides(match: Array, valid: Array) -> list[tuple[int, list[int], list[int]]]:
    """(query, its positives, its negatives) of every query that has both."""
    result = []
    for q in range(len(match)):
        positives = [c for c in range(match.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(match.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives, negatives))
    return result


def values(S: Array, match: Array, valid: Array, alpha: float = 2.0, beta: float = 0.5, cost: float = 25.0) -> Array:
    loss = np.zeros(len(S))
    for q, positives, negatives in sides(match, valid):
        for p in positives:
            loss[q] += math.log(1 + math.exp(-alpha * (S[q, p] - beta))) / len(positives)
        for n in negatives:
            loss[q] += math.log(1 + math.exp(alpha * cost * (S[q, n] - beta))) / len(negatives)
    return loss


def weights(S: Array, match: Array, valid: Array, alpha: float = 2.0, beta: float = 0.5, cost: float = 25.0) -> Array:
    W = np.zeros_like(S)
    for q, positives, negatives in sides(match, valid):
        for p in positives:
            W[q, p] = -alpha / (1 + math.exp(alpha * (S[q, p] - beta))) / len(positives)
        for n in negatives:
            W[q, n] = alpha * cost / (1 + math.exp(-alpha * cost * (S[q, n] - beta))) / len(negatives)
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
