"""The unified loss, (1/gamma) log(1 + Σ exp(gamma (s_n − s₊ + margin))) term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "unified:gamma=5,margin=0",
    "unified:gamma=50,margin=0.1",
    "unified:gamma=20,margin=0.53,weights=ssp",
    "unified:gamma=20,margins=ncr",
]


def terms(
    S: Array, match: Array, valid: Array, margin: float, gamma: float, weights: str | None
) -> dict[int, tuple[int, dict[int, float]]]:
    """query -> (its positive, negative -> exp(gamma (w_n s_n − w₊ s₊ + margin)))."""
    result = {}
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            p = positives[0]
            s_pos, s = S[q, p], {n: S[q, n] for n in negatives}
            if weights == "ssp":
                s_pos, s = (0.7 - 0.2 * s_pos) * s_pos, {n: (0.9 * x - 0.4) * x for n, x in s.items()}
            result[q] = (p, {n: math.exp(gamma * (x - s_pos + margin)) for n, x in s.items()})
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    gamma: float = 60.0,
    weights: str | None = None,
    margins: str | None = None,
) -> Array:
    """margins=ncr: without labels they are all 1, and the margins are `margin`."""
    loss = np.zeros(len(S))
    for q, (_, e) in terms(S, match, valid, margin, gamma, weights).items():
        loss[q] = math.log(1 + sum(e.values())) / gamma
    return loss


def gradient(S: Array, match: Array, valid: Array, margin: float, gamma: float, weights: str | None) -> Array:
    """W; under weights=ssp a negative has the slope 1.8 s − 0.4 and the positive 0.7 − 0.4 s."""
    W = np.zeros_like(S)
    for q, (p, e) in terms(S, match, valid, margin, gamma, weights).items():
        for n in e:
            share = e[n] / (1 + sum(e.values()))
            W[q, n] = share * (1.8 * S[q, n] - 0.4 if weights == "ssp" else 1)
            W[q, p] -= share * (0.7 - 0.4 * S[q, p] if weights == "ssp" else 1)
    return W


def weights(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    gamma: float = 60.0,
    weights: str | None = None,
    margins: str | None = None,
) -> Array:
    return gradient(S, match, valid, margin, gamma, weights)


def counted_weights(
    S: Array,
    match: Array,
    valid: Array,
    eps: float,
    convention: str,
    direction: str,
    margin: float = 0.2,
    gamma: float = 60.0,
    weights: str | None = None,
    margins: str | None = None,
) -> tuple[Array, Array]:
    """Negatives whose |weight| is above eps, and the sum of these."""
    W = np.abs(gradient(S, match, valid, margin, gamma, weights))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
