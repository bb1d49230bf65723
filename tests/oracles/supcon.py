"""The supervised contrastive loss: the mean over the positives outside of the logarithm, or inside of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "supcon:form=in",
    "supcon:form=out,tau=0.01",
    "supcon:form=in,tau=0.5",
]


def softmax(S: Array, match: Array, valid: Array, tau: float) -> dict[int, tuple[dict[int, float], list[int]]]:
    """query -> (candidate -> its share of Σ exp(s/tau) over the valid candidates, its positives)."""
    result = {}
    for q in range(len(S)):
        columns = [c for c in range(S.shape[1]) if valid[q, c]]
        positives = [c for c in columns if match[q, c]]
        if positives and len(positives) < len(columns):
            total = sum(math.exp(S[q, c] / tau) for c in columns)
            result[q] = ({c: math.exp(S[q, c] / tau) / total for c in columns}, positives)
    return result


def values(S: Array, match: Array, valid: Array, tau: float = 0.1, form: str = "out") -> Array:
    loss = np.zeros(len(S))
    for q, (share, positives) in softmax(S, match, valid, tau).items():
        if form == "out":
            loss[q] = -sum(math.log(share[p]) for p in positives) / len(positives)
        else:
            loss[q] = -math.log(sum(share[p] for p in positives) / len(positives))
    return loss


def weights(S: Array, match: Array, valid: Array, tau: float = 0.1, form: str = "out") -> Array:
    """(share − target)/tau; the target of a positive is 1/|P| (out), or its share among the positives (in)."""
    W = np.zeros_like(S)
    for q, (share, positives) in softmax(S, match, valid, tau).items():
        among = sum(share[p] for p in positives)
        for c in share:
            W[q, c] = share[c] / tau
        for p in positives:
            W[q, p] -= (1 / len(positives) if form == "out" else share[p] / among) / tau
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with W above eps, and the sum of their W."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
