"""Where in the ranking the weight of a batch lies, query by query and negative by negative."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

NAN = float("nan")


def bin_of(rank: int) -> int:
    """The last rank of the bin 1, 2, 3-4, 5-8, ..."""
    return 1 if rank == 1 else 2 ** math.ceil(math.log2(rank))


def means(values: dict[Any, list[float]]) -> dict[Any, float]:
    return {key: sum(of_key) / len(of_key) for key, of_key in values.items()}


def by_rank(
    S: Sequence[Sequence[float]], W: Sequence[Sequence[float]], positives: Any, negatives: Any, near: float
) -> dict[str, Any]:
    """The statistics and the curves of a batch."""
    candidate, query, difference = (defaultdict[Any, list[float]](list) for _ in range(3))
    x, y, total, close, ranked, bins = [], [], 0.0, 0.0, 0.0, set()
    for s, w, positive, negative in zip(S, W, positives, negatives, strict=True):
        if not (any(positive) and any(negative)):
            continue
        best = max(a for a, p in zip(s, positive, strict=True) if p)
        columns = sorted((c for c in range(len(s)) if negative[c]), key=lambda c: -s[c])
        R, of_query = 1 + sum(s[c] > best for c in columns), sum(abs(w[c]) for c in columns)
        for rank, c in enumerate(columns, 1):
            candidate[bin_of(rank)].append(abs(w[c]))
            middle = min(max(round((s[c] - best) / 0.05), -40), 40)
            difference[round(0.05 * middle, 2)].append(abs(w[c]))
            close += abs(w[c]) * (abs(s[c] - best) <= near)
            ranked += abs(w[c]) * rank
        query[bin_of(R)].append(of_query)
        total += of_query
        if of_query and R >= 2:
            x.append(math.log(R))
            y.append(math.log(of_query))
            bins.add(bin_of(R))
    number = sum(map(len, query.values()))
    return {
        "exponent": slope(x, y) if len(bins) >= 3 else NAN,
        "ridge": ridge(difference),
        "near_share": close / total if total else NAN,
        "mean_rank": ranked / total if total else NAN,
        "candidate_weight": means(candidate),
        "query_weight": means(query),
        "query_share": {key: len(of_key) / number for key, of_key in query.items()},
        "weight_share": {key: sum(of_key) / total if total else NAN for key, of_key in query.items()},
        "difference_weight": means(many(difference)),
    }


def many(values: dict[Any, list[float]]) -> dict[Any, list[float]]:
    """The bins with 10 numbers or more."""
    return {key: of_key for key, of_key in values.items() if len(of_key) >= 10}


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return products / sum((a - middle_x) ** 2 for a in x)


def ridge(difference: dict[Any, list[float]]) -> float:
    of_bins = means(many(difference))
    largest = max(of_bins.values(), default=0)
    highest = [key for key, mean in of_bins.items() if mean >= largest * (1 - 1e-6)]
    return float(highest[0]) if largest > 0 and len(highest) == 1 else NAN
