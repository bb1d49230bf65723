"""ArcFace from its equation: the angle to the positive is enlarged by a margin before the softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "arcface:margin=0,scale=10",
    "arcface:margin=0.3,scale=5",
    "arcface:margin=2,scale=2",  # most positives are beyond π − margin
]


def target(s: float, margin: float) -> tuple[float, float]:
    """cos(θ + margin), or beyond θ = π − margin a line that keeps falling; and its slope in s."""
    angle = math.acos(s)
    if angle > math.pi - margin:
        return s - margin * math.sin(margin), 1.0
    return math.cos(angle + margin), math.sin(angle + margin) / math.sin(angle)


def softmax(
    S: Array, match: Array, valid: Array, margin: float, scale: float
) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> its positive, and candidate -> probability, for queries with both kinds."""
    result = {}
    for q in range(len(S)):
        columns = [c for c in range(S.shape[1]) if valid[q, c]]
        positives = [c for c in columns if match[q, c]]
        if positives and len(positives) < len(columns):
            z = {c: scale * (target(S[q, c], margin)[0] if match[q, c] else S[q, c]) for c in columns}
            top = max(z.values())
            total = sum(math.exp(z[c] - top) for c in columns)
            result[q] = positives[0], {c: math.exp(z[c] - top) / total for c in columns}
    return result


def values(S: Array, match: Array, valid: Array, margin: float = 0.5, scale: float = 64.0) -> Array:
    loss = np.zeros(len(S))
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        loss[q] = -math.log(p[positive])
    return loss


def weights(S: Array, match: Array, valid: Array, margin: float = 0.5, scale: float = 64.0) -> Array:
    W = np.zeros_like(S)
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        for c in p:
            W[q, c] = scale * p[c]
        push = sum(p[n] for n in p if n != positive)
        W[q, positive] = -scale * push * target(S[q, positive], margin)[1]
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, margin: float = 0.5,
    scale: float = 64.0,
) -> tuple[Array, Array]:  # fmt: skip
    """Negatives with a probability above eps, and the sum of their probabilities."""
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    for q, (positive, p) in softmax(S, match, valid, margin, scale).items():
        high = [p[c] for c in p if c != positive and p[c] > eps]
        count[q], mass[q] = len(high), sum(high)
    return count, mass
