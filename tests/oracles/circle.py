"""Circle loss: the two sums as printed, and the gradient by the chain rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "circle:margin=0.4,gamma=80",
    "circle:factors=attached",
    "circle:factors=attached,margin=-0.1,gamma=10",
    "circle:margin=-0.3,gamma=20",
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


def terms(
    s: Array, positives: list[int], negatives: list[int], margin: float, gamma: float
) -> tuple[dict[int, float], dict[int, float]]:
    """The exponentials of each positive and of each negative of one query."""
    pull, push = {}, {}
    for p in positives:
        pull[p] = math.exp(-gamma * max(0.0, 1 + margin - s[p]) * (s[p] - 1 + margin))
    for n in negatives:
        push[n] = math.exp(gamma * max(0.0, s[n] + margin) * (s[n] - margin))
    return pull, push


def values(
    S: Array, match: Array, valid: Array, margin: float = 0.25, gamma: float = 256.0, factors: str = "held"
) -> Array:
    loss = np.zeros(len(S))
    for q, positives, negatives in sides(match, valid):
        pull, push = terms(S[q], positives, negatives, margin, gamma)
        loss[q] = math.log(1 + sum(push.values()) * sum(pull.values()))
    return loss


def weights(
    S: Array, match: Array, valid: Array, margin: float = 0.25, gamma: float = 256.0, factors: str = "held"
) -> Array:
    """Z/Σ · exponential · slope of its exponent, where Z = Σ_n Σ_p / (1 + Σ_n Σ_p)."""
    W = np.zeros_like(S)
    for q, positives, negatives in sides(match, valid):
        pull, push = terms(S[q], positives, negatives, margin, gamma)
        product = sum(push.values()) * sum(pull.values())
        Z = product / (1 + product)
        for p in positives:
            a = max(0.0, 1 + margin - S[q, p])
            slope = -gamma * (a - (S[q, p] - 1 + margin) * (a > 0) * (factors == "attached"))
            W[q, p] = Z * pull[p] / sum(pull.values()) * slope
        for n in negatives:
            a = max(0.0, S[q, n] + margin)
            slope = gamma * (a + (S[q, n] - margin) * (a > 0) * (factors == "attached"))
            W[q, n] = Z * push[n] / sum(push.values()) * slope
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps whatever its sign, and the sum of their absolute weights."""
    W = np.abs(weights(S, match, valid, **hyper))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
