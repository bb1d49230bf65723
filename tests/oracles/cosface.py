"""CosFace from its equation: the positive's cosine is lowered by a margin before the softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "cosface:margin=0,scale=10",
    "cosface:scale=5",
]


def softmax(
    S: Array, match: Array, valid: Array, margin: float, scale: float
) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> its positive, and candidate -> probability, for queries with both kinds."""
    result = {}
    for q in range(len(S)):
        columns = [c for c in range(S.shape[1]) if valid[q, c]]
        positives = [c for c in columns if match[q, c]]
        if positives and len(positives) < len(columns):
            z = {c: scale * (S[q, c] - margin * float(match[q, c])) for c in columns}
            top = max(z.values())
            total = sum(math.exp(z[c] - top) for c in columns)
            result[q] = positives[0], {c: math.exp(z[c] - top) / total for c in columns}
    return result


def values(S: Array, match: Array, valid: Array, margin: float = 0.35, scale: float = 64.0) -> Array:
    loss = np.zeros(len(S))
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        loss[q] = -math.log(p[positive])
    return loss


def weights(S: Array, match: Array, valid: Array, margin: float = 0.35, scale: float = 64.0) -> Array:
    W = np.zeros_like(S)
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        for c in p:
            W[q, c] = -scale * sum(p[n] for n in p if n != c) if c == positive else scale * p[c]
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, margin: float = 0.35,
    scale: float = 64.0,
) -> tuple[Array, Array]:  # fmt: skip
    """Negatives with a probability above eps, and the sum of their probabilities."""
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        high = [p[c] for c in p if c != positive and p[c] > eps]
        count[q], mass[q] = len(high), sum(high)
    return count, mass
