"""A sheet of pairs to label: stratified by probability and by each signal, so that few labels tell much."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lossscope.core.types import Rows

from .calibration import Doubles

_BY_PROBABILITY = (0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # ranks, as shares of all pairs
_BY_SIGNAL = (0, 3e-4, 3e-3, 3e-2, 0.3)
_LAST = (0, 1e-3, 1e-2, 5e-2, 0.2, 1.0)


def draw_sheet(logit: Doubles, Z: Doubles, size: int, seed: int) -> Rows:
    """Return the places of pairs to label, (size,) or fewer, in random order.

    About half are drawn evenly from strata of the probability's rank, whose widths grow by factors of three; some from
    strata of each signal, the more signals the more, because one that the weights underrate would not be seen
    otherwise; what is left from few wide strata of the probability.

    Args:
        logit: (n,) log-odds of pairs that stand for all pairs.
        Z: (n, k) their signals.
        size: pairs of the sheet.
        seed: of what is drawn.
    """
    random = np.random.default_rng(seed)
    chosen: dict[int, None] = {}

    def draw(values: Doubles, each: int, edges: Sequence[float]) -> None:
        order = np.lexsort((np.arange(len(values)), -values))
        for low, high in pairwise(edges):
            stratum = [
                one for one in order[int(low * len(order)) : int(high * len(order))].tolist() if one not in chosen
            ]
            for one in random.choice(stratum, min(each, len(stratum)), replace=False) if stratum else ():
                if len(chosen) < size:
                    chosen[int(one)] = None

    draw(logit, max(1, size // (2 * (len(_BY_PROBABILITY) - 1))), _BY_PROBABILITY)
    each = max(1, size // (3 * (len(_BY_SIGNAL) - 1) * max(Z.shape[1], 1)))
    for column in Z.T:
        draw(column, each, _BY_SIGNAL)
    while len(chosen) < min(size, len(logit)):
        before = len(chosen)
        draw(logit, -(-(size - before) // (len(_LAST) - 1)), _LAST)
        if len(chosen) == before:
            break
    return random.permutation(np.array(list(chosen), dtype=np.int64))
