"""Statistics of the best positive and the hardest negative of each query, by a loop over its row."""

from __future__ import annotations

import math
import statistics
from typing import Any

Array = Any
NAN = float("nan")


def rows(S: Array, match: Array, valid: Array) -> list[tuple[list[float], dict[int, float]]]:
    """Similarities of the positives, and candidate -> similarity of the negatives, of queries that have both."""
    result = []
    for q in range(len(S)):
        positives = [float(S[q][c]) for c in range(len(S[q])) if valid[q][c] and match[q][c]]
        negatives = {c: float(S[q][c]) for c in range(len(S[q])) if valid[q][c] and not match[q][c]}
        if positives and negatives:
            result.append((positives, negatives))
    return result


def nearest_rank(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))] if ordered else NAN


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else NAN


def similarity(S: Array, match: Array, valid: Array) -> dict[str, float]:
    pairs = [(max(positives), max(negatives.values())) for positives, negatives in rows(S, match, valid)]
    columns = {"s_pos": [a for a, _ in pairs], "s_neg": [b for _, b in pairs], "margin": [a - b for a, b in pairs]}
    result = {}
    for name, values in columns.items():
        result[name] = mean(values)
        for percent in (10, 50, 90):
            result[f"{name}_q{percent}"] = nearest_rank(values, percent / 100)
    return {**result, "inverted": mean([float(b > a) for a, b in pairs])}


def recall(S: Array, match: Array, valid: Array) -> dict[str, float]:
    ranks, ties = [], 0
    for positives, negatives in rows(S, match, valid):
        best = max(positives)
        ranks.append(1 + sum(1 for s in negatives.values() if s > best))
        ties += any(s == best for s in negatives.values())
    result = {f"R@{k}": 100 * mean([float(rank <= k) for rank in ranks]) for k in (1, 5, 10)}
    result["medr"] = math.floor(statistics.median(ranks)) if ranks else NAN
    result["meanr"], result["MRR"] = mean([float(rank) for rank in ranks]), mean([1 / rank for rank in ranks])
    return {**result, "ties": float(ties)}


def hubness(S: Array, match: Array, valid: Array) -> dict[str, float]:
    number = [0] * len(S[0])
    usable = rows(S, match, valid)
    for _, negatives in usable:
        hardest = max(negatives.values())
        number[min(c for c, s in negatives.items() if s == hardest)] += 1
    if not usable:
        return dict.fromkeys(("hub_max_count", "hub_skewness", "never_hardest", "hub_share"), NAN)
    middle = len(usable) / len(number)
    deviation = math.sqrt(mean([(n - middle) ** 2 for n in number]))
    third = mean([(n - middle) ** 3 for n in number])
    hubs = sorted(number, reverse=True)[: max(1, len(number) // 100)]
    return {
        "hub_max_count": float(max(number)),
        "hub_skewness": third / deviation**3 if deviation else NAN,
        "never_hardest": number.count(0) / len(number),
        "hub_share": sum(hubs) / len(usable),
    }


def alignment(S: Array, match: Array, valid: Array) -> dict[str, float]:
    """The squared distance of a query and its best positive, for unit vectors."""
    return {"alignment": mean([2 - 2 * max(positives) for positives, _ in rows(S, match, valid)])}
