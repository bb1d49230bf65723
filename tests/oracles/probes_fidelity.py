"""Cosine of the gradient of each query and the gradient with its k heaviest negatives, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Row = Sequence[float]
NAN = float("nan")


def by_weight(w: Row, s: Row, negative: Sequence[bool]) -> list[int]:
    """The columns of the negatives, heaviest first; of equal weights the most similar first."""
    return sorted((c for c in range(len(w)) if negative[c]), key=lambda c: (-abs(w[c]), -s[c]))


def truncated(
    w: Row, s: Row, match: Sequence[bool], negative: Sequence[bool], k: int, sums_to_zero: bool
) -> list[float]:
    """The row with its k heaviest negatives; where rows sum to 0, the positives share what these push."""
    columns = by_weight(w, s, negative)
    left_out = [c for c in columns[k:] if w[c]]
    row = [0.0 if c in columns[k:] else x for c, x in enumerate(w)]
    if sums_to_zero and left_out:
        push = sum(w[c] for c in columns[:k])
        pull = sum(abs(x) for x, m in zip(w, match, strict=True) if m)
        row = [-push * abs(w[c]) / pull if match[c] else x for c, x in enumerate(row)]
    return row


def cosine(a: Any, b: Any) -> float:
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def tangent(w: Row, v: Any, candidates: Any) -> Any:
    """Σ w t, less its part along v."""
    g = np.zeros(len(v))
    for x, t in zip(w, candidates, strict=True):
        g = g + x * t
    return g - float(np.dot(g, v)) / float(np.dot(v, v)) * v


def cosines(
    w: Row,
    s: Row,
    match: Sequence[bool],
    negative: Sequence[bool],
    sums_to_zero: bool,
    v: Any = None,
    candidates: Any = None,
) -> list[float]:
    """The cosine for k = 0, 1, ..., all negatives: of rows of W, or of the gradients of the embedding v."""
    if not any(w):
        return [NAN]
    rows = [truncated(w, s, match, negative, k, sums_to_zero) for k in range(sum(negative) + 1)]
    vectors = rows if v is None else [tangent(row, v, candidates) for row in rows]
    whole = w if v is None else tangent(w, v, candidates)
    return [cosine(vector, whole) for vector in vectors]


def stays_from(values: Sequence[float], share: float) -> float:
    """The smallest k from which on all cosines are at or above the share."""
    if math.isnan(values[0]):
        return NAN
    return next(k for k in range(len(values)) if all(x >= share for x in values[k:]))
