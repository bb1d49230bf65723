"""The hinge on the hardest negative whose margin shrinks with the soft label of the pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "ncr:margin=0.4,base=2",
    "ncr:map=linear",
    "ncr:map=sine,margin=0.1",
]


def margin_of(y: float, margin: float, base: float, map: str) -> float:
    if map == "linear":
        return margin * y
    if map == "sine":
        return margin * (math.sin(math.pi * y - math.pi / 2) / 2 + 1 / 2)
    return margin * (base**y - 1) / (base - 1)


def rows(S: Array, match: Array, valid: Array) -> list[tuple[int, int, int]]:
    """(query, its positive, its hardest negative: the first one if several are equal) of every query that has both."""
    result = []
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives[0], max(negatives, key=lambda c: (S[q, c], -c))))
    return result


def values(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    base: float = 10.0,
    map: str = "exponential",
    label: Array = None,
) -> Array:
    """label: (q,) soft labels; None is 1 for all."""
    loss = np.zeros(len(S))
    for q, p, n in rows(S, match, valid):
        m = margin_of(1.0 if label is None else label[q], margin, base, map)
        loss[q] = max(0.0, m - S[q, p] + S[q, n])
    return loss


def weights(
    S: Array,
    match: Array,
    valid: Array,
    margin: float = 0.2,
    base: float = 10.0,
    map: str = "exponential",
    label: Array = None,
) -> Array:
    W = np.zeros_like(S)
    for q, p, n in rows(S, match, valid):
        m = margin_of(1.0 if label is None else label[q], margin, base, map)
        if m - S[q, p] + S[q, n] > 0:
            W[q, n], W[q, p] = 1, -1
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """1 for a query whose hardest negative violates its margin."""
    W = weights(S, match, valid, **hyper)
    high = ((W > 0) & (eps < 1)).sum(1)
    return high, high
