"""Standard error of a mean over queries whose candidates are items, too: loops over queries, candidates and items.

g_i = Σ over queries of i of (y − mean) + Σ over queries of others of (what candidate i adds to y − its row's mean);
SE² = n / (n − 1) (Σ g_i² − Σ of the squares of what a query has from one item) / Q²; the first difference is not
below 0.8 of the squares of the queries' part. A quantile has the squares of its batches beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
CountOfRow = Callable[[float, Sequence[float]], float]  # s of the positive, s of the negatives -> number of the query


def active_triplets(positive: float, negatives: Sequence[float]) -> float:
    """#{s_n > s₊ − 0.2}."""
    return float(sum(s > positive - 0.2 for s in negatives))


def pull(positive: float, negatives: Sequence[float]) -> float:
    """1 − p₊ of a softmax at tau 0.05."""
    weights = [np.exp((s - positive) / 0.05) for s in negatives]
    return float(sum(weights) / (1 + sum(weights)))


def effective_number(positive: float, negatives: Sequence[float]) -> float:
    """(Σ w)² / Σ w² of the negatives of a softmax at tau 0.05."""
    weights = [np.exp((s - max(negatives)) / 0.05) for s in negatives]
    return float(sum(weights) ** 2 / sum(w * w for w in weights))


def hardest(positive: float, negatives: Sequence[float]) -> float:
    """The largest s_n."""
    return float(max(negatives))


def standard_error(
    batches: Sequence[tuple[Floats, Sequence[int], Sequence[int]]],
    count: CountOfRow,
    predicted: float = 0.0,
    observed: float = 0.0,
) -> float:
    """Return the standard error of the mean of `count`.

    Args:
        batches: S (b, b) whose diagonal are the positives, the items of its queries, and those of its candidates.
        count: number of a query.
        predicted: Σ size² (mean of `count` of a batch − mean)², of a statistic that is no mean.
        observed: Σ size² (statistic of a batch − mean)².
    """
    numbers = [[count(S[q, q], np.delete(S[q], q)) for q in range(len(S))] for S, _, _ in batches]
    total = sum(len(of_batch) for of_batch in numbers)
    mean = sum(map(sum, numbers)) / total
    g: dict[int, float] = {}
    query_sums: dict[int, float] = {}
    overlap = 0.0
    for (S, queries, candidates), of_batch in zip(batches, numbers, strict=True):
        for q, y in enumerate(of_batch):
            g[queries[q]] = g.get(queries[q], 0.0) + y - mean
            query_sums[queries[q]] = query_sums.get(queries[q], 0.0) + y - mean
            adds = {}
            for c in range(len(S)):
                if c != q:
                    adds[c] = y - count(S[q, q], np.delete(S[q], [q, c]))
            of_row = sum(adds.values()) / len(adds)
            of_items: dict[int, float] = {}
            for c, added in adds.items():
                if candidates[c] != queries[q]:
                    g[candidates[c]] = g.get(candidates[c], 0.0) + added - of_row
                    of_items[candidates[c]] = of_items.get(candidates[c], 0.0) + added - of_row
            overlap += sum(x**2 for x in of_items.values())
    square = max(sum(x**2 for x in g.values()) - overlap, 0.8 * sum(x**2 for x in query_sums.values()))
    square = max(square + observed - predicted, observed)
    return float(np.sqrt(square * len(g) / (len(g) - 1)) / total)
