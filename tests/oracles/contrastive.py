"""Contrastive loss, pair by pair, with the slope of each pair by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "contrastive:margin=0.5",
    "contrastive:margin=1.3",
    "contrastive:distance=cosine",
    "contrastive:distance=cosine,margin=0.6",
]


def pairs(match: Array, valid: Array) -> list[tuple[int, int]]:
    """(query, candidate) of every valid pair of the queries that have a positive and a negative."""
    result = []
    for q in range(len(match)):
        columns = [c for c in range(match.shape[1]) if valid[q, c]]
        if any(match[q, c] for c in columns) and not all(match[q, c] for c in columns):
            result += [(q, c) for c in columns]
    return result


def values(S: Array, match: Array, valid: Array, distance: str = "euclidean", margin: float = 1.0) -> Array:
    loss = np.zeros(len(S))
    for q, c in pairs(match, valid):
        d = math.sqrt(max(2 - 2 * S[q, c], 0)) if distance == "euclidean" else 1 - S[q, c]
        term = d if match[q, c] else max(0.0, margin - d)
        loss[q] += term**2 / 2 if distance == "euclidean" else term
    return loss


def weights(S: Array, match: Array, valid: Array, distance: str = "euclidean", margin: float = 1.0) -> Array:
    """d(½ d²)/ds = −1; d(½ (margin − d)²)/ds = (margin − d)/d."""
    W = np.zeros_like(S)
    for q, c in pairs(match, valid):
        d = math.sqrt(max(2 - 2 * S[q, c], 0)) if distance == "euclidean" else 1 - S[q, c]
        if match[q, c]:
            W[q, c] = -1
        elif d < margin and distance == "cosine":
            W[q, c] = 1
        elif 0 < d < margin:
            W[q, c] = (margin - d) / d
    return W


def counted_weights(
    S: Array,
    match: Array,
    valid: Array,
    eps: float,
    convention: str,
    direction: str,
    distance: str = "euclidean",
    margin: float = 1.0,
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, distance, margin)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
