"""Count the negatives that are probably relevant, one pair at a time."""

from __future__ import annotations

import math
from typing import Any

Array = Any


def cosine(a: Array, b: Array) -> float:
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def counts(
    row: Array, match: Array, valid: Array, group: int, groups: Array, keys: Array, candidates: Array, near: float
) -> dict[str, int]:
    """Counts of one query, from its similarities and image, and the image, key and vector of every candidate."""
    positives = [c for c in range(len(row)) if valid[c] and match[c]]
    result = {"same_image": 0, "duplicates": 0, "outranking": 0, "near": 0}
    for c in range(len(row)):
        if not valid[c] or match[c]:
            continue
        result["same_image"] += groups[c] == group
        result["duplicates"] += groups[c] != group and any(keys[c] == keys[p] for p in positives)
        result["outranking"] += all(row[c] > row[p] for p in positives)
        result["near"] += any(cosine(candidates[c], candidates[p]) >= near for p in positives)
    return result
