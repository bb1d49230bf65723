"""Statistics of embeddings, one by one and pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any


def unit(rows: Array) -> list[Array]:
    return [np.asarray(row, dtype=float) / math.sqrt(sum(x * x for x in row)) for row in rows]


def uniformity(queries: Array) -> float:
    rows = unit(queries)
    terms = []
    for i in range(len(rows)):
        for j in range(len(rows)):
            if i != j:
                terms.append(math.exp(-2 * sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))))
    return math.log(sum(terms) / len(terms)) if terms else float("nan")


def modality_gap(queries: Array, candidates: Array) -> dict[str, float]:
    first, second = (sum(unit(rows)) / len(rows) for rows in (queries, candidates))
    product = sum(a * b for a, b in zip(first, second, strict=True))
    lengths = math.sqrt(sum(a * a for a in first)) * math.sqrt(sum(b * b for b in second))
    gap = math.sqrt(sum((a - b) ** 2 for a, b in zip(first, second, strict=True)))
    return {"gap": gap, "gap_cosine": product / lengths}


def effective_rank(queries: Array) -> float:
    """The effective rank from the singular values."""
    sigma = [float(s) for s in np.linalg.svd(np.asarray(queries, dtype=float), compute_uv=False)]
    shares = [s / sum(sigma) for s in sigma]
    return math.exp(-sum(p * math.log(p) for p in shares if p > 1e-12))
