"""The sigmoid loss: a binary classification of each pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "siglip:scale=100,bias=-20",
    "siglip:scale=1,bias=0,learn=false",
    "siglip:scale=30,bias=4",
]


def pairs(match: Array, valid: Array) -> list[tuple[int, int, int]]:
    """(query, candidate, z) of every valid pair of the queries that have both kinds; z is 1 or −1."""
    result = []
    for q in range(len(match)):
        columns = [c for c in range(match.shape[1]) if valid[q, c]]
        if any(match[q, c] for c in columns) and not all(match[q, c] for c in columns):
            result += [(q, c, 1 if match[q, c] else -1) for c in columns]
    return result


def values(S: Array, match: Array, valid: Array, scale: float = 10.0, bias: float = -10.0, learn: bool = True) -> Array:
    loss = np.zeros(len(S))
    for q, c, z in pairs(match, valid):
        loss[q] += math.log1p(math.exp(-z * (scale * S[q, c] + bias)))
    return loss


def weights(
    S: Array, match: Array, valid: Array, scale: float = 10.0, bias: float = -10.0, learn: bool = True
) -> Array:
    W = np.zeros_like(S)
    for q, c, z in pairs(match, valid):
        W[q, c] = -z * scale / (1 + math.exp(z * (scale * S[q, c] + bias)))
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with W above eps, and the sum of their W."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
