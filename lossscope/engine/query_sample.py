"""Which queries' candidates have their effects computed: a share of all, by seed, batch and row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lossscope.core.types import Rows

_MASK, _GOLDEN = (1 << 62) - 1, np.uint64(0x9E3779B97F4A7C15)
_QUERIES, _FEWEST = 2048, 32  # whose candidates' effects are computed in batches of 32, and in any
_ENTRIES = 1 << 19  # of S, at most, but for the fewest queries


@dataclass(frozen=True)
class QuerySample:
    """The queries whose candidates' effects are computed: a share of all, chosen by seed, batch and row.

    Effects of all queries would cost as much as the sweep. Their sums are divided by the share, and what that adds to
    the variance is in `ItemSums.overlap`, so that intervals are right on average with any share; with the one taken
    here their width is uncertain by a few per cent.
    """

    share: float
    seed: int

    @classmethod
    def of(cls, units: int, queries: int, candidates: int, seed: int) -> QuerySample:
        """Return the sample of a sweep over `queries` queries of one direction, with `candidates` of a batch."""
        shrink = math.sqrt(min(32 / max(candidates, 1), 1.0))
        enough = max(min(_QUERIES * shrink, _ENTRIES / max(candidates, 1)), _FEWEST) / max(queries, 1)
        return cls(min(max(enough, 2 * shrink / math.sqrt(max(units, 1))), 1.0), seed)

    def places(self, first: int, batches: int, queries: int, forward: bool) -> Rows:
        """Return the places of the sampled queries among those of consecutive batches, in one direction.

        Args:
            first: number of the first batch.
            batches: how many there are.
            queries: of each.
            forward: whether they are of the first direction.
        """
        n = batches * queries
        if self.share >= 1:
            return np.arange(n, dtype=np.int64)
        batch = np.repeat(np.arange(first, first + batches, dtype=np.uint64), queries)
        row = np.tile(np.arange(queries, dtype=np.uint64), batches)
        words = _mixed(np.uint64(2 * (self.seed & _MASK) + int(forward)), batch << np.uint64(32) | row)
        return np.flatnonzero(words < np.uint64(int(self.share * 2.0**64))).astype(np.int64)


def _mixed(seed: np.uint64, x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a random word of 64 bits for each number: SplitMix64, started at the seed's own word."""
    start = _finalised(np.full(1, seed, np.uint64) + _GOLDEN)
    return _finalised(x * _GOLDEN + start)


def _finalised(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
