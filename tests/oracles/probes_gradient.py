"""The gradient of each vector under W, candidate by candidate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
NAN = float("nan")


def length(x: Array) -> float:
    return math.sqrt(sum(float(a) ** 2 for a in x))


def perpendicular(x: Array, v: Array) -> Array:
    """The part of x perpendicular to v."""
    return x - v * float(np.dot(x, v)) / float(np.dot(v, v))


def gradient(weights: Array, others: Array) -> Array:
    g = np.zeros(len(others[0]))
    for w, t in zip(weights, others, strict=True):
        g = g + w * t
    return g


def tangent_and_radial(g: Array, v: Array) -> dict[str, float]:
    radial = abs(float(np.dot(g, v))) / length(v) / length(g) if length(g) else NAN
    return {"tangent": length(perpendicular(g, v)), "radial": radial}


def bound_17(weights: Array, v: Array, candidates: Array, best: int) -> float:
    """The norms of the terms of eq. (14), perpendicular to v, added up; the rest of the row acts on the positive."""
    total = abs(sum(weights)) * length(perpendicular(candidates[best], v))
    for c, t in enumerate(candidates):
        if c != best:
            total += abs(weights[c]) * length(perpendicular(t - candidates[best], v))
    return total


def influence(weights: Array, candidates: Array, match: Array, negative: Array, row: Array) -> dict[str, float]:
    g = gradient(weights, candidates)
    names = ("share_pos", "share_neg", "share_hardest", "opposed", "largest", "cancellation")
    if not length(g):
        return dict.fromkeys(names, NAN)
    shares = [w * float(np.dot(t, g)) / length(g) ** 2 for w, t in zip(weights, candidates, strict=True)]
    negatives = [c for c in range(len(shares)) if negative[c]]
    hardest = max(negatives, key=lambda c: row[c])
    return {
        "share_pos": sum(share for share, m in zip(shares, match, strict=True) if m),
        "share_neg": sum(shares[c] for c in negatives),
        "share_hardest": shares[hardest],
        "opposed": sum(share for share in shares if share < 0),
        "largest": max(shares),
        "cancellation": length(g) / sum(abs(w) for w in weights),
    }
