"""SmoothAP, one pair of candidates at a time, with its derivative by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
MORE = [
    "smoothap:tau=0.1",
    "smoothap:tau=1",
]


def sides(match: Array, valid: Array) -> list[tuple[int, list[int], list[int]]]:
    """(query, its positives, its negatives) of every query that has both."""
    result = []
    for q in range(len(match)):
        positives = [c for c in range(match.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(match.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            result.append((q, positives, negatives))
    return result


def above(s: Array, i: int, j: int, tau: float) -> float:
    """G_ij: how much candidate j is ranked above candidate i."""
    x = (s[j] - s[i]) / tau
    return 1 / (1 + math.exp(-x)) if x > -500 else 0.0


def values(S: Array, match: Array, valid: Array, tau: float = 0.01) -> Array:
    loss = np.zeros(len(S))
    for q, positives, negatives in sides(match, valid):
        precision = 0.0
        for i in positives:
            A = sum(above(S[q], i, j, tau) for j in positives if j != i)
            C = sum(above(S[q], i, n, tau) for n in negatives)
            precision += (1 + A) / (1 + A + C)
        loss[q] = 1 - precision / len(positives)
    return loss


def weights(S: Array, match: Array, valid: Array, tau: float = 0.01) -> Array:
    """d/dG of (1 + A)/(1 + A + C) is C/R² for another positive and −(1 + A)/R² for a negative; dG = G(1−G)/tau."""
    W = np.zeros_like(S)
    for q, positives, negatives in sides(match, valid):
        for i in positives:
            A = sum(above(S[q], i, j, tau) for j in positives if j != i)
            C = sum(above(S[q], i, n, tau) for n in negatives)
            for j in positives + negatives:
                if j == i:
                    continue
                G = above(S[q], i, j, tau)
                slope = (C if j in positives else -(1 + A)) / (1 + A + C) ** 2
                push = -slope * G * (1 - G) / tau / len(positives)
                W[q, j] += push
                W[q, i] -= push
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, tau: float = 0.01
) -> tuple[Array, Array]:
    """Triplets (i, j) with G(1−G)/R² above eps over |P|; `text` has 1/tau, `released` of t2i wrong rows (E2)."""
    count, mass = np.zeros(len(S)), np.zeros(len(S))
    per_image = max(S.shape[0] // S.shape[1], 1)
    for q, positives, negatives in sides(match, valid):
        firsts = positives
        if convention == "released" and direction == "t2i":
            firsts = [i for i in range(per_image * q, per_image * (q + 1)) if i < S.shape[1]]
        for i in firsts:
            others = [j for j in positives + negatives if j != i]
            R = 1 + sum(above(S[q], i, j, tau) for j in others)
            for j in others:
                G = above(S[q], i, j, tau)
                weight = G * (1 - G) / R**2 / (tau if convention == "text" else 1)
                if weight > eps:
                    count[q] += 1 / len(positives)
                    mass[q] += weight / len(positives)
    return count, mass
