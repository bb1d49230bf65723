"""Interval of a paired difference of mean softmax mass, by loops: every query, every candidate left out, in numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]


def w_pos(s: Floats, positive: int, tau: float) -> float:
    """1 − p of the positive, the weight that NT-Xent puts on it."""
    e = np.exp(s / tau)
    return float(1 - e[positive] / e.sum())


def effect(s: Floats, positive: int, candidate: int, tau: float) -> float:
    """The weight less that without the candidate."""
    kept = np.arange(len(s)) != candidate
    return w_pos(s, positive, tau) - w_pos(s[kept], int(kept[:positive].sum()), tau)


def interval(
    batches: list[tuple[list[int], list[int]]], sides: tuple[Floats, Floats], units: tuple[list[int], list[int]],
    tau: float, level: float = 0.95,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the mean difference B − A of W_pos, and the ends of its interval.

    Args:
        batches: queries and candidates of each, query i having candidate i as its positive.
        sides: similarities of A and B, queries as rows.
        units: of queries and of candidates.
        tau: of NT-Xent.
        level: of the interval.
    """
    query_sums: dict[int, float] = {}
    number: dict[int, int] = {}
    others: dict[int, float] = {}
    differences, overlap = [], 0.0
    for queries, candidates in batches:
        for index, query in enumerate(queries):
            rows = [side[query, candidates] for side in sides]
            d = w_pos(rows[1], index, tau) - w_pos(rows[0], index, tau)
            unit = units[0][query]
            differences.append(d)
            query_sums[unit] = query_sums.get(unit, 0.0) + d
            number[unit] = number.get(unit, 0) + 1
            negatives = [c for c in range(len(candidates)) if c != index]
            moved = {c: effect(rows[1], index, c, tau) - effect(rows[0], index, c, tau) for c in negatives}
            mean = sum(moved.values()) / len(moved)
            for c, change in moved.items():
                other = units[1][candidates[c]]
                if other != unit:
                    others[other] = others.get(other, 0.0) + change - mean
                    overlap += (change - mean) ** 2
    n, mean = len(differences), float(np.mean(differences))
    seen_units = sorted({*query_sums, *others})
    g = np.array([query_sums.get(u, 0.0) - mean * number.get(u, 0) + others.get(u, 0.0) for u in seen_units])
    alone = np.array([query_sums.get(u, 0.0) - mean * number.get(u, 0) for u in seen_units])
    square = max(float((g**2).sum()) - overlap, float((alone**2).sum()))
    k = len(seen_units)
    freedom = k - 1 if overlap <= square * k / (k - 1) else max((k - 1) * (square * k / (k - 1) / overlap) ** 2, 1)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * (square * k / (k - 1)) ** 0.5 / n
    return mean, mean - half, mean + half
