"""Triplet loss with the hardest negative, searched one candidate at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
MORE = [
    "triplet_sh:margin=0",
    "triplet_sh:margin=0.5",
]


def rows(S: Array, match: Array, valid: Array) -> list[tuple[int, int, int]]:
    """(query, its positive, its hardest negative: the first one if several are equal) of every query that has both."""
    result = []
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        hardest = None
        for c in range(S.shape[1]):
            if valid[q, c] and not match[q, c] and (hardest is None or S[q, c] > S[q, hardest]):
                hardest = c
        if positives and hardest is not None:
            result.append((q, positives[0], hardest))
    return result


def values(S: Array, match: Array, valid: Array, margin: float = 0.2) -> Array:
    loss = np.zeros(len(S))
    for q, p, n in rows(S, match, valid):
        loss[q] = max(0.0, margin - S[q, p] + S[q, n])
    return loss


def weights(S: Array, match: Array, valid: Array, margin: float = 0.2) -> Array:
    W = np.zeros_like(S)
    for q, p, n in rows(S, match, valid):
        if margin - S[q, p] + S[q, n] > 0:
            W[q, n], W[q, p] = 1, -1
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, margin: float = 0.2
) -> tuple[Array, Array]:
    """1 for a query whose hardest negative violates the margin."""
    high = np.zeros(len(S))
    for q, p, n in rows(S, match, valid):
        high[q] = float(margin - S[q, p] + S[q, n] > 0 and eps < 1)
    return high, high
