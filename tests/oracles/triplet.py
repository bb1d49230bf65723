"""Triplet loss, one query and one negative at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
MORE = [
    "triplet:margin=0",
    "triplet:margin=0.5",
]


def rows(match: Array, valid: Array) -> list[tuple[int, int, list[int]]]:
    """(query, its positive, its negatives) of every query that has both."""
    result = []
    for q in range(len(match)):
        positives = [c for c in range(match.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(match.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives[0], negatives))
    return result


def values(S: Array, match: Array, valid: Array, margin: float = 0.2) -> Array:
    loss = np.zeros(len(S))
    for q, p, negatives in rows(match, valid):
        for n in negatives:
            loss[q] += max(0.0, margin - S[q, p] + S[q, n])
    return loss


def weights(S: Array, match: Array, valid: Array, margin: float = 0.2) -> Array:
    W = np.zeros_like(S)
    for q, p, negatives in rows(match, valid):
        for n in negatives:
            if margin - S[q, p] + S[q, n] > 0:
                W[q, n] += 1
                W[q, p] -= 1
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, margin: float = 0.2
) -> tuple[Array, Array]:
    """Violating negatives of each query; `released` adds t2i up over the queries of each candidate (E1)."""
    violating = np.zeros_like(S)
    for q, p, negatives in rows(match, valid):
        for n in negatives:
            violating[q, n] = float(margin - S[q, p] + S[q, n] > 0)
    by_image = convention == "released" and direction == "t2i"
    high = np.where(violating > eps, violating, 0).sum(0 if by_image else 1)
    return high, high
