"""GOAL: triplet weight times pair weight on the hardest negative, one query at a time, sets as Python lists."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

Array = Any
MORE = [
    "goal:triplet=con,pair=con,variant=paper",
    "goal:triplet=con,pair=con,variant=released",
    "goal:triplet=con,pair=lin,variant=paper",
    "goal:triplet=con,pair=lin,variant=released",
    "goal:triplet=con,pair=sig,variant=paper",
    "goal:triplet=con,pair=sig,variant=released",
    "goal:triplet=con,pair=lin-ms,variant=paper",
    "goal:triplet=con,pair=lin-ms,variant=released",
    "goal:triplet=con,pair=sig-ms,variant=paper",
    "goal:triplet=con,pair=sig-ms,variant=released",
    "goal:triplet=nca,pair=con,variant=paper",
    "goal:triplet=nca,pair=con,variant=released",
    "goal:triplet=nca,pair=lin,variant=paper",
    "goal:triplet=nca,pair=lin,variant=released",
    "goal:triplet=nca,pair=sig,variant=paper",
    "goal:triplet=nca,pair=sig,variant=released",
    "goal:triplet=nca,pair=lin-ms,variant=paper",
    "goal:triplet=nca,pair=lin-ms,variant=released",
    "goal:triplet=nca,pair=sig-ms,variant=paper",
    "goal:triplet=nca,pair=sig-ms,variant=released",
    "goal:triplet=cir,pair=con,variant=paper",
    "goal:triplet=cir,pair=con,variant=released",
    "goal:triplet=cir,pair=lin,variant=paper",
    "goal:triplet=cir,pair=lin,variant=released",
    "goal:triplet=cir,pair=sig,variant=paper",
    "goal:triplet=cir,pair=sig,variant=released",
    "goal:triplet=cir,pair=lin-ms,variant=paper",
    "goal:triplet=cir,pair=lin-ms,variant=released",
    "goal:triplet=cir,pair=sig-ms,variant=paper",
    "goal:triplet=cir,pair=sig-ms,variant=released",
    "goal:triplet=nca,pair=sig,tau=3,alpha=4,beta=5,lam=0.2",
    "goal:triplet=con,pair=lin-ms,margin=0.4,ms_eps=0.3",
    "goal:triplet=cir,pair=sig-ms,m_plus=0.1,m_minus=0.2",
    "goal:triplet=nca,pair=lin-ms,m_minus=0.2",
]


def logistic(x: float) -> float:
    """1 / (1 + e^−x)."""
    return 1 / (1 + math.exp(-x))


def rows(S: Array, match: Array, valid: Array) -> list[tuple[int, int, int, list[int]]]:
    """(query, positive, hardest negative: the first one if several are equal, the other negatives)."""
    result = []
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if positives and negatives:
            hardest = negatives[0]
            for n in negatives:
                if S[q, n] > S[q, hardest]:
                    hardest = n
            result.append((q, positives[0], hardest, [n for n in negatives if n != hardest]))
    return result


def values(S: Array, match: Array, valid: Array, **hyper: Any) -> None:
    """Return no value: the paper states the gradient alone."""


def triplet_weight(kind: str, s_pos: float, s_neg: float, tau: float, margin: float, variant: str) -> float:
    """T: eq. 5-8; `released` has no margin in con and one half inside cir."""
    if kind == "con":
        return 1.0 if variant == "released" or margin - s_pos + s_neg > 0 else 0.0
    if kind == "nca":
        return logistic(-tau * (s_pos - s_neg))
    half = 0.5 if variant == "released" else 0.0
    return logistic(-tau * (s_pos * (2 - s_pos) - s_neg**2 - half))


def mean(numbers: list[float]) -> float:
    """The mean; 0 of no numbers."""
    return sum(numbers) / len(numbers) if numbers else 0.0


def weights(
    S: Array,
    match: Array,
    valid: Array,
    triplet: str = "con",
    pair: str = "con",
    tau: float = 10.0,
    margin: float = 0.2,
    alpha: float = 2.0,
    beta: float = 10.0,
    lam: float = 0.5,
    ms_eps: float = 0.1,
    m_plus: float | None = None,
    m_minus: float | None = None,
    variant: str = "paper",
) -> Array:
    W = np.zeros_like(S)
    all_rows = rows(S, match, valid)
    below = operator.le if variant == "released" else operator.lt
    for q, p, n, others in all_rows:
        s, h = S[q, p], S[q, n]
        near = [S[r, other] for r, other, _, _ in all_rows if r != q and below(S[r, other], h + ms_eps)]
        smallest = min(S[r, other] for r, other, _, _ in all_rows)
        hard = [S[q, c] for c in others if below(smallest - ms_eps, S[q, c])]
        if pair == "sig-ms":
            m_p = mean([math.exp(alpha * (s - r)) for r in near])
            m_n = mean([math.exp(-beta * (h - r)) for r in hard])
        else:
            m_p, m_n = mean([s - r for r in near]), mean([h - r for r in hard])
        m_p = m_p if m_plus is None else m_plus
        m_n = m_n if m_minus is None else m_minus
        P_pos, P_neg = {
            "con": (1.0, 1.0),
            "lin": (1 - s, h),
            "sig": (1 / (1 + math.exp(alpha * (s - lam))), 1 / (1 + math.exp(-beta * (h - lam)))),
            "lin-ms": ((1 - m_p) * (1 - s), (1 + m_n) * h),
            "sig-ms": (1 / (m_p + math.exp(alpha * (s - lam))), 1 / (m_n + math.exp(-beta * (h - lam)))),
        }[pair]
        T = triplet_weight(triplet, s, h, tau, margin, variant)
        W[q, n], W[q, p] = T * P_neg, -T * P_pos
    return W


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **hyper: Any
) -> tuple[Array, Array]:
    """Negatives with |W| above eps (there is at most one), and that |W|."""
    W = np.abs(weights(S, match, valid, **hyper))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
