"""The contrastive loss of vision-language pre-training, log(1 + Σ exp(gamma (s_n − s₊))) term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "vlc:gamma=5",
]


def terms(S: Array, match: Array, valid: Array, gamma: float) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> (its positive, negative -> exp(gamma (s_n − s₊)))."""
    result = {}
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            p = positives[0]
            result[q] = (p, {n: math.exp(gamma * (S[q, n] - S[q, p])) for n in negatives})
    return result


def values(S: Array, match: Array, valid: Array, gamma: float = 50.0) -> Array:
    loss = np.zeros(len(S))
    for q, (_, e) in terms(S, match, valid, gamma).items():
        loss[q] = math.log(1 + sum(e.values()))
    return loss


def weights(S: Array, match: Array, valid: Array, gamma: float = 50.0) -> Array:
    W = np.zeros_like(S)
    for q, (p, e) in terms(S, match, valid, gamma).items():
        for n in e:
            W[q, n] = gamma * e[n] / (1 + sum(e.values()))
            W[q, p] -= W[q, n]
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, gamma: float = 50.0
) -> tuple[Array, Array]:
    """Negatives with a softmax probability above eps, and the sum of their probabilities."""
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    for q, (_, e) in terms(S, match, valid, gamma).items():
        high = [x / (1 + sum(e.values())) for x in e.values() if x / (1 + sum(e.values())) > eps]
        count[q], mass[q] = len(high), sum(high)
    return count, mass
