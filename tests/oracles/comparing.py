"""Paired tests the slow way: every sign, every subset of hypotheses, every caption by itself."""

from __future__ import annotations

import math
from itertools import combinations, product


def sign_flip_test(differences: list[float]) -> float:
    """Two-sided p of the mean difference: the share of all 2^n signs that give a mean at least as far from 0."""
    observed = abs(sum(differences))
    all_signs = product((1, -1), repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in all_signs]
    return sum(value >= observed - 1e-9 for value in sums) / len(sums)


def closed_testing(p: list[float]) -> list[float]:
    """Closed testing with Bonferroni: the largest p · size of all sets of hypotheses that contain this one."""
    known = [i for i, value in enumerate(p) if not math.isnan(value)]
    sets = [s for size in range(1, len(known) + 1) for s in combinations(known, size)]
    return [
        max((min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s), default=math.nan) for i in range(len(p))
    ]


def t_of_pairs(a: list[float], b: list[float]) -> tuple[float, float]:
    """t and d_z of paired differences."""
    d = [x - y for x, y in zip(a, b, strict=True)]
    mean = sum(d) / len(d)
    sd = math.sqrt(sum((x - mean) ** 2 for x in d) / (len(d) - 1))
    return mean / (sd / math.sqrt(len(d))), mean / sd


def rsum(rows: list[tuple[str, int]]) -> float:
    """Sum of the six recalls, from (direction, rank) of every query."""
    total = 0.0
    for side in ("i2t", "t2i"):
        ranks = [rank for direction, rank in rows if direction == side]
        total += sum(100 * sum(rank < k for rank in ranks) / len(ranks) for k in (1, 5, 10))
    return total
