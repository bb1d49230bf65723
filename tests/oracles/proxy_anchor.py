"""Proxy-Anchor from its equation, one class vector after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "proxy_anchor:alpha=4",
    "proxy_anchor:alpha=8,margin=0",
]


Term = tuple[float, int, dict[int, float]]


def terms(S: Array, match: Array, valid: Array, alpha: float, margin: float) -> list[Term]:
    """(factor of a logarithm, its class vector, item -> exponential) of all logarithms, times the number of items."""
    usable = [q for q in range(len(match)) if 0 < sum(match[q] & valid[q]) < sum(valid[q])]
    pulls, pushes, classes = [], [], 0
    for p in range(match.shape[1]):
        inside = {q: math.exp(-alpha * (S[q, p] - margin)) for q in usable if valid[q, p] and match[q, p]}
        others = {q: math.exp(alpha * (S[q, p] + margin)) for q in usable if valid[q, p] and not match[q, p]}
        classes += bool(inside or others)
        pulls += [(p, inside)] if inside else []
        pushes += [(p, others)] if others else []
    n = len(usable)
    return [(-n / len(pulls), p, x) for p, x in pulls] + [(n / classes, p, x) for p, x in pushes]


def values(S: Array, match: Array, valid: Array, alpha: float = 32.0, margin: float = 0.1) -> Array:
    loss = np.zeros(len(S))
    for factor, _, exponentials in terms(S, match, valid, alpha, margin):
        for q in exponentials:
            loss[q] += abs(factor) * math.log(1 + sum(exponentials.values())) / len(exponentials)
    return loss


def weights(S: Array, match: Array, valid: Array, alpha: float = 32.0, margin: float = 0.1) -> Array:
    W = np.zeros_like(S)
    for factor, p, exponentials in terms(S, match, valid, alpha, margin):
        for q, value in exponentials.items():
            W[q, p] += factor * alpha * value / (1 + sum(exponentials.values()))
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight, without alpha, is above eps, and the sum of these weights."""
    W = weights(S, match, valid, **hyper) / hyper.get("alpha", 32.0)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
