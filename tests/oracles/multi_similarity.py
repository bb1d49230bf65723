"""Multi-similarity loss: mine the pairs one by one, then the two logarithms as printed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "multi_similarity:mining=false",
    "multi_similarity:lam=1",
    "multi_similarity:ms_eps=-0.2",
    "multi_similarity:alpha=5,beta=10,lam=0.3,ms_eps=0.02",
]


def terms(
    S: Array, match: Array, valid: Array, alpha: float, beta: float, lam: float, mining: bool, ms_eps: float
) -> dict[int, tuple[dict[int, float], dict[int, float]]]:
    """query -> exp(−alpha (s − lam)) of its kept positives, exp(beta (s − lam)) of its kept negatives."""
    result = {}
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if not (positives and negatives):
            continue
        if mining:
            lowest, highest = min(S[q, p] for p in positives), max(S[q, n] for n in negatives)
            positives = [p for p in positives if S[q, p] - ms_eps < highest]
            negatives = [n for n in negatives if S[q, n] + ms_eps > lowest]
        result[q] = (
            {p: math.exp(-alpha * (S[q, p] - lam)) for p in positives},
            {n: math.exp(beta * (S[q, n] - lam)) for n in negatives},
        )
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    alpha: float = 2.0,
    beta: float = 50.0,
    lam: float = 0.5,
    mining: bool = True,
    ms_eps: float = 0.1,
) -> Array:
    loss = np.zeros(len(S))
    for q, (pull, push) in terms(S, match, valid, alpha, beta, lam, mining, ms_eps).items():
        loss[q] = math.log(1 + sum(pull.values())) / alpha + math.log(1 + sum(push.values())) / beta
    return loss


def weights(
    S: Array,
    match: Array,
    valid: Array,
    alpha: float = 2.0,
    beta: float = 50.0,
    lam: float = 0.5,
    mining: bool = True,
    ms_eps: float = 0.1,
) -> Array:
    W = np.zeros_like(S)
    for q, (pull, push) in terms(S, match, valid, alpha, beta, lam, mining, ms_eps).items():
        for p in pull:
            W[q, p] = -pull[p] / (1 + sum(pull.values()))
        for n in push:
            W[q, n] = push[n] / (1 + sum(push.values()))
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
