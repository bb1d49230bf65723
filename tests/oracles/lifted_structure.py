"""Lifted structured loss: for each positive pair, the negatives of its two ends; its slopes by the chain rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "lifted_structure:form=anchor",
    "lifted_structure:margin=0.2",
    "lifted_structure:form=anchor,margin=0",
]


def sides(match: Array, valid: Array) -> dict[int, tuple[list[int], list[int]]]:
    """query -> (its positives, its negatives) of every query that has both."""
    result = {}
    for q in range(len(match)):
        positives = [c for c in range(match.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(match.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result[q] = (positives, negatives)
    return result


def distance(s: float) -> float:
    return math.sqrt(max(2 - 2 * s, 0))


def ends(rows: dict[int, tuple[list[int], list[int]]], q: int, p: int) -> list[tuple[int, int]]:
    """The negative pairs that share the query or the candidate of a positive pair."""
    return [(q, n) for n in rows[q][1]] + [(other, p) for other in rows if p in rows[other][1]]


def values(S: Array, match: Array, valid: Array, form: str = "pair", margin: float = 1.0) -> Array:
    loss, rows = np.zeros(len(S)), sides(match, valid)
    for q, (positives, negatives) in rows.items():
        if form == "anchor":
            far = math.log(sum(math.exp(distance(S[q, p])) for p in positives))
            near = math.log(sum(math.exp(margin - distance(S[q, n])) for n in negatives))
            loss[q] = max(0.0, far + near)
            continue
        for p in positives:
            near = math.log(sum(math.exp(margin - distance(S[a, b])) for a, b in ends(rows, q, p)))
            loss[q] += max(0.0, near + distance(S[q, p])) ** 2 / (2 * len(positives))
    return loss


def weights(S: Array, match: Array, valid: Array, form: str = "pair", margin: float = 1.0) -> Array:
    """Slopes with respect to the distances, times ∂d/∂s = −1/d."""
    slope, rows = np.zeros_like(S), sides(match, valid)
    loss = values(S, match, valid, form, margin)
    for q, (positives, negatives) in rows.items():
        if form == "anchor" and loss[q] > 0:
            far = sum(math.exp(distance(S[q, p])) for p in positives)
            near = sum(math.exp(margin - distance(S[q, n])) for n in negatives)
            for p in positives:
                slope[q, p] += math.exp(distance(S[q, p])) / far
            for n in negatives:
                slope[q, n] -= math.exp(margin - distance(S[q, n])) / near
        if form == "pair":
            for p in positives:
                near = sum(math.exp(margin - distance(S[a, b])) for a, b in ends(rows, q, p))
                J = max(0.0, math.log(near) + distance(S[q, p])) / len(positives)
                slope[q, p] += J
                for a, b in ends(rows, q, p):
                    slope[a, b] -= J * math.exp(margin - distance(S[a, b])) / near
    W = np.zeros_like(S)
    for q, c in zip(*np.nonzero(slope), strict=True):
        W[q, c] = -slope[q, c] / distance(S[q, c]) if distance(S[q, c]) > 0 else 0
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives whose weight is above eps, and the sum of their weights."""
    W = weights(S, match, valid, **hyper)
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
