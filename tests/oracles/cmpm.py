"""Cross-modal projection matching: the divergence of a softmax from the true matches, one term for each candidate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "cmpm:scale=10",
    "cmpm:scale=50",
    "cmpm:scale=5,floor=0.01",
]


def distributions(
    S: Array, match: Array, valid: Array, scale: float
) -> dict[int, tuple[dict[int, float], dict[int, float]]]:
    """query -> (candidate -> p, candidate -> t): predicted and true matches."""
    result = {}
    for q in range(len(S)):
        columns = [c for c in range(S.shape[1]) if valid[q, c]]
        number = sum(bool(match[q, c]) for c in columns)
        if 0 < number < len(columns):
            total = sum(math.exp(scale * S[q, c]) for c in columns)
            p = {c: math.exp(scale * S[q, c]) / total for c in columns}
            result[q] = (p, {c: float(match[q, c]) / number for c in columns})
    return result


def values(S: Array, match: Array, valid: Array, scale: float = 1.0, floor: float = 1e-8) -> Array:
    loss = np.zeros(len(S))
    for q, (p, t) in distributions(S, match, valid, scale).items():
        loss[q] = sum(p[c] * (math.log(p[c]) - math.log(t[c] + floor)) for c in p)
    return loss


def weights(S: Array, match: Array, valid: Array, scale: float = 1.0, floor: float = 1e-8) -> Array:
    """dp_k/ds_c = scale p_k ([k = c] − p_c), and d(Σ p log p) = Σ (log p + 1) dp."""
    W = np.zeros_like(S)
    for q, (p, t) in distributions(S, match, valid, scale).items():
        for c in p:
            for k in p:
                slope = math.log(p[k]) + 1 - math.log(t[k] + floor)
                W[q, c] += slope * scale * p[k] * (float(k == c) - p[c])
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with |W| above eps, and the sum of their |W|."""
    W = np.abs(weights(S, match, valid, **hyper))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
