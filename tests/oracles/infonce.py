"""InfoNCE at one temperature: a softmax from its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "infonce:tau=0.01",
    "infonce:tau=0.5,learn=false",
    "infonce:tau=1,scale_max=20",
]


def softmax(S: Array, match: Array, valid: Array, tau: float) -> dict[int, dict[int, float]]:
    """query -> candidate -> exp(s/tau) over the sum of all valid candidates, for queries with both kinds."""
    result = {}
    for q in range(len(S)):
        columns = [c for c in range(S.shape[1]) if valid[q, c]]
        if any(match[q, c] for c in columns) and not all(match[q, c] for c in columns):
            total = sum(math.exp(S[q, c] / tau) for c in columns)
            result[q] = {c: math.exp(S[q, c] / tau) / total for c in columns}
    return result


def values(
    S: Array, match: Array, valid: Array, tau: float = 0.07, learn: bool = True, scale_max: float = 100.0
) -> Array:
    loss = np.zeros(len(S))
    for q, p in softmax(S, match, valid, tau).items():
        loss[q] = -sum(math.log(p[c]) for c in p if match[q, c])
    return loss


def weights(
    S: Array, match: Array, valid: Array, tau: float = 0.07, learn: bool = True, scale_max: float = 100.0
) -> Array:
    W = np.zeros_like(S)
    for q, p in softmax(S, match, valid, tau).items():
        for c in p:
            W[q, c] = (p[c] - float(match[q, c])) / tau
    return W


def counted_weights(
    S: Array,
    match: Array,
    valid: Array,
    eps: float,
    convention: str,
    direction: str,
    tau: float = 0.07,
    learn: bool = True,
    scale_max: float = 100.0,
) -> tuple[Array, Array]:
    """Negatives with a probability above eps, and the sum of their probabilities."""
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    for q, p in softmax(S, match, valid, tau).items():
        high = [p[c] for c in p if not match[q, c] and p[c] > eps]
        count[q], mass[q] = len(high), sum(high)
    return count, mass
