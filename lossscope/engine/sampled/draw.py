"""Draw queries: the first n of a random order of all N, which depends on the seed alone."""

from __future__ import annotations

import numpy as np

from lossscope.core.shuffles import random_words
from lossscope.core.types import Direction, Rows

LEAST = 2  # queries of a sample, at least: a deviation needs two
_STREAMS: dict[Direction, int] = {"i2t": 3 << 32, "t2i": (3 << 32) + 1}  # of words, apart from the streams of epochs


def draw_queries(population: int, start: int, stop: int, seed: int, direction: Direction) -> Rows:
    """Return queries `start`..`stop`-1 of the random order, in increasing order: drawn without replacement.

    The order is that in which the words of the seed's stream first name a query. So a larger sample contains a smaller
    one, and memory depends on the sample, not on N.

    >>> first, more = (set(draw_queries(100, 0, n, 0, "i2t").tolist()) for n in (5, 20))
    >>> len(first), first < more
    (5, True)
    """
    if stop >= population:  # all queries that the first ones left
        early = draw_queries(population, 0, start, seed, direction) if start else np.zeros(0, np.int64)
        return np.setdiff1d(np.arange(population, dtype=np.int64), early, assume_unique=True)
    number = 2 * stop + 64
    while True:
        words = random_words(number, seed, _STREAMS[direction]) % np.uint64(population)
        named, first_index = np.unique(words.astype(np.int64), return_index=True)
        if len(named) >= stop:
            drawn: Rows = np.sort(named[np.argsort(first_index, kind="stable")][start:stop])
            return drawn
        number *= 2
