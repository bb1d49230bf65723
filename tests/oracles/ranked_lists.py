"""Measures of ranked lists, by sorting candidates in Python and walking down the list."""

from __future__ import annotations

import math
from typing import Any

Array = Any


def ranking(scores: Array, leave_out: int | None = None) -> list[int]:
    """Candidates from best to worst, earlier ones first among equals; `leave_out` is the query itself."""
    return sorted((c for c in range(len(scores)) if c != leave_out), key=lambda c: (-float(scores[c]), c))


def ndcg(order: list[int], relevant: set[int], k: int) -> float:
    """DCG of the first k over the DCG of a list that begins with all relevant candidates."""
    gained = sum(1 / math.log2(rank + 1) for rank, c in enumerate(order[:k], start=1) if c in relevant)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    return gained / ideal


def reciprocal_rank(order: list[int], relevant: set[int], k: int) -> float:
    """1 / rank of the first relevant candidate, 0 behind rank k."""
    return next((1 / rank for rank, c in enumerate(order[:k], start=1) if c in relevant), 0.0)


def recall(order: list[int], relevant: set[int], k: int) -> float:
    """Share of the relevant candidates among the first k."""
    return sum(c in relevant for c in order[:k]) / len(relevant)


def r_precision(order: list[int], relevant: set[int]) -> float:
    """Share of relevant candidates among the first R."""
    return sum(c in relevant for c in order[: len(relevant)]) / len(relevant)


def map_at_r(order: list[int], relevant: set[int]) -> float:
    """Mean over the first R ranks of the precision at the rank, 0 where the candidate is not relevant."""
    R, hits, total = len(relevant), 0, 0.0
    for rank, c in enumerate(order[:R], start=1):
        if c in relevant:
            hits += 1
            total += hits / rank
    return total / R


def success(scores: Array, relevant: set[int], k: int, leave_out: int | None = None) -> float:
    """Are fewer than k candidates strictly better than the best relevant candidate?"""
    best = max(scores[c] for c in relevant)
    return float(sum(scores[c] > best for c in range(len(scores)) if c != leave_out) < k)


def mixed_ties(scores: Array, relevant: set[int], leave_out: int | None = None) -> bool:
    """Is an irrelevant candidate exactly as good as a relevant candidate?"""
    values = {scores[c] for c in relevant}
    return any(scores[c] in values for c in range(len(scores)) if c not in relevant and c != leave_out)


def measures(scores: Array, relevant: set[int], cutoffs: list[int], leave_out: int | None = None) -> dict[str, float]:
    """Return all measures by name, recalls in per cent."""
    order = ranking(scores, leave_out)
    later = [k for k in cutoffs if k > 1]
    return {
        **{f"R@{k}": 100 * success(scores, relevant, k, leave_out) for k in cutoffs},
        **{f"recall@{k}": 100 * recall(order, relevant, k) for k in cutoffs},
        **{f"nDCG@{k}": ndcg(order, relevant, k) for k in later},
        **{f"MRR@{k}": reciprocal_rank(order, relevant, k) for k in later},
        "MAP@R": map_at_r(order, relevant),
        "R-precision": r_precision(order, relevant),
    }
