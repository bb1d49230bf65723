"""What retrieval found in one direction: ranks of the best positives, the ten best candidates, and measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

Ranks = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Retrieval:
    """Ranks of the queries of one direction."""

    ranks: Ranks  # (q,) 0-based rank of the best positive: the number of candidates strictly above it
    ties: Ranks  # (q,) non-relevant candidates exactly equal to the best positive; they do not worsen its rank
    hits: Flags  # (q, 10) relevance of the ten best candidates, earlier rows first among equals
    relevant: Ranks  # (q,) number of positives
    # (q,) of each measure of `measures.measures`, where cut-offs were given
    measures: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    mixed_ties: Flags | None = None  # (q,) a non-relevant candidate equals any positive; where cut-offs were given

    def recall(self, k: int) -> float:
        """Return R@k in per cent: the share of queries whose best positive is among the k best candidates."""
        return 100.0 * float((self.ranks < k).mean())

    def average_precision(self, k: int, divisor: str = "relevant") -> float:
        """Return mAP@k in [0, 1], the mean of `precisions`. Raises InputError where they do."""
        return float(self.precisions(k, divisor).mean())

    def precisions(self, k: int, divisor: str = "relevant") -> npt.NDArray[np.float64]:
        """Return AP@k (q,) of every query.

        Args:
            k: 1..10.
            divisor: `relevant`: min(k, |P|), the standard; `hits`: number of positives among the k best (E10).

        Raises:
            InputError: unless 1 <= k <= 10, and for another divisor.
        """
        if not 1 <= k <= 10 or divisor not in ("relevant", "hits"):
            raise InputError(f"k must be 1..10 and divisor relevant or hits; got {k} and {divisor!r}")
        hits = self.hits[:, :k].astype(float)
        positions = np.arange(1, hits.shape[1] + 1)
        sums = (np.cumsum(hits, axis=1) / positions * hits).sum(1)
        divisors = np.minimum(k, self.relevant) if divisor == "relevant" else hits.sum(1)
        precisions: npt.NDArray[np.float64] = sums / np.maximum(divisors, 1)
        return precisions

    def statistics(self, floor_median: bool = True) -> dict[str, float]:
        """R@k; medr = floor(median) + 1 and meanr = mean + 1, as published; MRR of the best positive, mAP@5, ties.

        Args:
            floor_median: round the median down, as the authors of image-text models do; those of MMT and CE do not.
        """
        return {
            **{f"R@{k}": self.recall(k) for k in (1, 5, 10)},
            **self._rank_statistics(floor_median),
            "mAP@5": self.average_precision(5),
            "mAP@5_hits": self.average_precision(5, "hits"),
            "ties": float((self.ties > 0).sum()),
        }

    def all_statistics(self, floor_median: bool = True) -> dict[str, float]:
        """Means of the measures; medr, meanr, MRR of the best positive and mAP@5; ties.

        `ties`: queries with a non-relevant candidate equal to the best positive; `ties_any`: to any positive.
        """
        mixed = np.zeros(0) if self.mixed_ties is None else self.mixed_ties
        means = {name: float(values.mean()) for name, values in self.measures.items()}
        return {
            **{name: self.recall(int(name[2:])) if name.startswith("R@") else mean for name, mean in means.items()},
            **self._rank_statistics(floor_median),
            "mAP@5": self.average_precision(5),
            "ties": float((self.ties > 0).sum()),
            "ties_any": float(mixed.sum()),
        }

    def _rank_statistics(self, floor_median: bool) -> dict[str, float]:
        median = float(np.median(self.ranks))
        return {
            "medr": (math.floor(median) if floor_median else median) + 1.0,
            "meanr": float(self.ranks.mean() + 1),
            "MRR": float((1 / (self.ranks + 1)).mean()),
        }

    def take(self, queries: Flags) -> Retrieval:
        """Return the retrieval of some of the queries (q,)."""
        return Retrieval(
            self.ranks[queries],
            self.ties[queries],
            self.hits[queries],
            self.relevant[queries],
            {name: values[queries] for name, values in self.measures.items()},
            None if self.mixed_ties is None else self.mixed_ties[queries],
        )

    @classmethod
    def join(cls, parts: Sequence[Retrieval]) -> Retrieval:
        """Return the retrieval of all queries, from that of some at a time."""
        mixed = [part.mixed_ties for part in parts if part.mixed_ties is not None]
        return cls(
            np.concatenate([part.ranks for part in parts]),
            np.concatenate([part.ties for part in parts]),
            np.concatenate([part.hits for part in parts]),
            np.concatenate([part.relevant for part in parts]),
            {name: np.concatenate([part.measures[name] for part in parts]) for name in parts[0].measures},
            np.concatenate(mixed) if mixed else None,
        )
