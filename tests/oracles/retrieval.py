"""Retrieval by sorting every row with argsort and reading the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def order(scores: Array) -> list[int]:
    """Candidates from best to worst, earlier ones first among equals."""
    return [int(c) for c in np.argsort(-np.asarray(scores), kind="stable")]


def rank(scores: Array, relevant: set[int]) -> int:
    """Candidates strictly better than the best relevant one."""
    best = max(scores[c] for c in relevant)
    return sum(1 for c in order(scores) if scores[c] > best)


def ties(scores: Array, relevant: set[int]) -> int:
    """Irrelevant candidates exactly as good as the best relevant one."""
    best = max(scores[c] for c in relevant)
    return sum(1 for c in range(len(scores)) if c not in relevant and scores[c] == best)


def average_precision(scores: Array, relevant: set[int], k: int, divisor: str) -> float:
    """Mean over the hits inside the top k of the precision there, over min(k, |P|) or over the hits."""
    hits, total = 0, 0.0
    for position, c in enumerate(order(scores)[:k], start=1):
        if c in relevant:
            hits += 1
            total += hits / position
    by = min(k, len(relevant)) if divisor == "relevant" else hits
    return total / by if by else 0.0


def queries(S: Array, caption_image: Array, direction: str) -> list[tuple[Array, set[int]]]:
    """(scores, relevant candidates) of every query; images without a caption are no queries."""
    if direction == "t2i":
        return [(S[:, c], {int(caption_image[c])}) for c in range(S.shape[1])]
    captions = [{c for c in range(S.shape[1]) if caption_image[c] == i} for i in range(S.shape[0])]
    return [(S[i], captions[i]) for i in range(S.shape[0]) if captions[i]]
