"""Sums and concentration of the weights of each query, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Sequence

NAN = float("nan")


def mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else NAN


def mass(
    weights: Sequence[Sequence[float]], positive: Sequence[float], divisor: Sequence[float], eps: float
) -> dict[str, float]:
    """Sums of the weights of each query that is not skipped, and the weight on its positive."""
    high = [sum(w for w in row if w > eps) / n for row, n in zip(weights, divisor, strict=True)]
    low = [sum(w for w in row if not w > eps) / n for row, n in zip(weights, divisor, strict=True)]
    share = [a / (a + b) if a + b else NAN for a, b in zip(high, low, strict=True)]
    return {"W_neg": mean(high), "W_low": mean(low), "W_pos": mean(list(positive)), "share_above": mean(share)}


def contributors(weights: Sequence[Sequence[float]]) -> dict[str, float]:
    result: dict[str, list[float]] = {"N_eff": [], "perplexity": [], "top1": [], "top5": []}
    for row in weights:
        total = math.fsum(row)
        if not total:
            continue
        shares = sorted((w / total for w in row), reverse=True)
        result["N_eff"].append(1 / math.fsum(p * p for p in shares))
        result["perplexity"].append(math.exp(-math.fsum(p * math.log(p) for p in shares if p)))
        result["top1"].append(shares[0])
        result["top5"].append(math.fsum(shares[:5]))
    return {name: mean(values) for name, values in result.items()}
