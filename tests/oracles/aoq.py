"""The quintuplet loss, one query at a time, its gradient term by term."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
MORE = [
    "aoq:margin=0.4",
    "aoq:alpha=0.1,beta=0.5,gap=0.2",
    "aoq:offline_margin=0.1,gap=-0.1",
]


def terms(
    S: Array,
    match: Array,
    valid: Array,
    margin: float,
    alpha: float,
    beta: float,
    offline_margin: float,
    gap: float,
    offline: Array | None,
) -> tuple[Array, Array]:
    loss, W = np.zeros(len(S)), np.zeros_like(S)
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if not positives or not negatives:
            continue
        p = positives[0]
        kind = {c: 0 if offline is None else int(offline[q, c]) for c in negatives}
        online = [c for c in negatives if kind[c] == 0]
        mined = [c for c in negatives if kind[c] == 1]
        if online:
            n = max(online, key=lambda c: (S[q, c], -c))
            hinge = max(0.0, margin + S[q, n] - S[q, p])
            apart = S[q, mined[0]] - S[q, n] if mined else gap
            weight = beta - apart / alpha
            loss[q] += weight * hinge
            if hinge > 0:
                W[q, n] += weight
                W[q, p] -= weight
            if mined:
                W[q, mined[0]] -= hinge / alpha
                W[q, n] += hinge / alpha
        for c in negatives:
            if kind[c] > 0:
                share = 1.0 if kind[c] == 1 else 0.5
                hinge = offline_margin + S[q, c] - S[q, p]
                if hinge > 0:
                    loss[q] += share * hinge
                    W[q, c] += share
                    W[q, p] -= share
    return loss, W


def values(
    S: Array, match: Array, valid: Array, margin: float = 0.2, alpha: float = 0.3, beta: float = 1.5,
    offline_margin: float = 0.0, gap: float = 0.0, offline: Array | None = None,
) -> Array:  # fmt: skip
    return terms(S, match, valid, margin, alpha, beta, offline_margin, gap, offline)[0]


def weights(
    S: Array, match: Array, valid: Array, margin: float = 0.2, alpha: float = 0.3, beta: float = 1.5,
    offline_margin: float = 0.0, gap: float = 0.0, offline: Array | None = None,
) -> Array:  # fmt: skip
    return terms(S, match, valid, margin, alpha, beta, offline_margin, gap, offline)[1]


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **options: float
) -> tuple[Array, Array]:
    """Negatives whose |W| is above eps, and the sum of their weights."""
    W = np.abs(weights(S, match, valid, **options))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
