"""Draw pairs: at random within strata of the score for a rate, and by high signals for the fit alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lossscope.core.types import Rows

from .calibration import Doubles

_BY_SIGNAL = (0, 3e-4, 3e-3, 3e-2, 0.3)  # ranks, as shares of all pairs


def order_strata(strata: Sequence[Rows], keys: Rows, closed: Rows, seed: int) -> list[Rows]:
    """Return the pairs of each stratum in random order, each pair once.

    A pair that is in more batches comes earlier on average, as it is a larger share of their negatives.

    Args:
        strata: rows of each.
        keys: (n,) the same number for rows of the same pair.
        closed: keys of pairs that were drawn before, and are left out.
        seed: of the order.
    """
    random, seen = np.random.default_rng(seed), closed
    orders = []
    for stratum in strata:
        shuffled = random.permutation(stratum)
        shuffled = shuffled[~np.isin(keys[shuffled], seen)]
        order = shuffled[np.sort(np.unique(keys[shuffled], return_index=True)[1])]
        orders.append(order)
        seen = np.r_[seen, keys[order]]
    return orders


def deal(lengths: Sequence[int], size: int) -> list[int]:
    """Return how many rows to take from each stratum, as evenly as possible: `size` in total, or all rows if fewer.

    >>> deal([2, 9, 9], 10)
    [2, 4, 4]
    """
    taken = [0] * len(lengths)
    while sum(taken) < min(size, sum(lengths)):
        least = min((k for k in range(len(lengths)) if taken[k] < lengths[k]), key=lambda k: taken[k])
        taken[least] += 1
    return taken


def draw_for_fit(columns: Doubles, size: int, seed: int) -> Rows:
    """Return rows of (n, k) signals whose values are high, (size,) or fewer, evenly from strata of each column's rank.

    Without them the fit would never see a signal that the weights underrate.

    Args:
        columns: signals, or one score.
        size: of the rows.
        seed: of the draw.
    """
    random = np.random.default_rng(seed)
    chosen: dict[int, None] = {}
    for low, high in pairwise(_BY_SIGNAL):
        for column in columns.T:
            order = np.lexsort((np.arange(len(column)), -column))
            stratum = order[int(low * len(order)) : int(high * len(order))]
            stratum = stratum[~np.isin(stratum, list(chosen))]
            each = max(1, size // ((len(_BY_SIGNAL) - 1) * columns.shape[1]))
            for row in random.choice(stratum, min(each, len(stratum)), replace=False).tolist():
                chosen[row] = None
    return random.permutation(np.array(list(chosen), np.int64))[:size]
