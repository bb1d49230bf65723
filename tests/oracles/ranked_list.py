"""Ranked list loss: select the pairs on the wrong side of their boundary, then two averages of their distance to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "ranked_list:alpha=1.4,margin=0.2",
    "ranked_list:alpha=1.1,margin=0.1,T=0,lam=0.8",
    "ranked_list:alpha=1.0,margin=1.0",
]


def sides(
    S: Array, match: Array, valid: Array, alpha: float, margin: float
) -> list[tuple[int, dict[int, float], dict[int, float]]]:
    """(query, P* -> distances, N* -> distances) of every query that has positives and negatives at all."""
    result = []
    for q in range(len(S)):
        d = {c: math.sqrt(max(2 - 2 * S[q, c], 0)) for c in range(S.shape[1]) if valid[q, c]}
        positives, negatives = [c for c in d if match[q, c]], [c for c in d if not match[q, c]]
        if positives and negatives:
            far = {p: d[p] for p in positives if d[p] > alpha - margin}
            near = {n: d[n] for n in negatives if d[n] < alpha}
            result.append((q, far, near))
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    alpha: float = 1.2,
    margin: float = 0.4,
    T: float = 10.0,
    lam: float = 0.5,
) -> Array:
    loss = np.zeros(len(S))
    for q, far, near in sides(S, match, valid, alpha, margin):
        w = {n: math.exp(T * (alpha - near[n])) for n in near}
        for p in far:
            loss[q] += (1 - lam) * (far[p] - (alpha - margin)) / len(far)
        for n in near:
            loss[q] += lam * w[n] / sum(w.values()) * (alpha - near[n])
    return loss


def weights(
    S: Array,
    match: Array,
    valid: Array,
    alpha: float = 1.2,
    margin: float = 0.4,
    T: float = 10.0,
    lam: float = 0.5,
) -> Array:
    """∂d/∂s = −1/d, the w being constants."""
    W = np.zeros_like(S)
    for q, far, near in sides(S, match, valid, alpha, margin):
        w = {n: math.exp(T * (alpha - near[n])) for n in near}
        for p in far:
            W[q, p] = -(1 - lam) / len(far) / far[p]
        for n in near:
            W[q, n] = lam * w[n] / sum(w.values()) / near[n] if near[n] > 0 else 0
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
