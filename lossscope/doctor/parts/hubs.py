"""Which candidates are near too many queries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .alignment import Alignment
from .patient import Patient

_NEIGHBOURS = 10
_DRAWS = 50


@dataclass(frozen=True)
class DirectionHubs:
    """k-occurrences of the candidates of one direction."""

    label: str
    k: int  # neighbours of a query that are counted
    counts: npt.NDArray[np.int64]  # (m,) how many queries have a candidate among their k nearest
    skewness: float
    null: float  # 99th percentile of the skewness where neighbours are drawn by lot
    firsts: npt.NDArray[np.int64]  # (m,) for how many queries a candidate is the nearest
    null_first: float  # 99th percentile of the largest of these, as a share, where the nearest is drawn by lot

    @property
    def candidates(self) -> npt.NDArray[np.int64]:
        """The 1 % of the candidates that are the nearest most often, at least one."""
        return np.argsort(self.firsts)[::-1][: max(len(self.firsts) // 100, 1)]

    @property
    def share_of_hubs(self) -> float:
        """Share of the queries whose nearest is one of these."""
        return float(self.firsts[self.candidates].sum() / self.firsts.sum())

    @property
    def largest_share(self) -> float:
        """Share of the queries whose nearest is one and the same candidate."""
        return float(self.firsts.max() / len(self.firsts))


@dataclass(frozen=True)
class Hubs:
    """Hubs of both directions."""

    directions: tuple[DirectionHubs, ...]
    needs: ClassVar[tuple[type, ...]] = (Alignment,)

    @classmethod
    def of(cls, _: Patient, alignment: Alignment) -> Hubs:
        """Count neighbours in the sample of pairs."""
        k = max(1, min(_NEIGHBOURS, alignment.pairs // 20))
        null, first = null_skewness(alignment.pairs, k), null_first(alignment.pairs)
        found = []
        for label, S, valid in zip(alignment.labels, alignment.S, (alignment.valid, alignment.valid.T), strict=False):
            near = S.masked_fill(~valid, -np.inf).topk(k, dim=1).indices
            counts = near.flatten().bincount(minlength=len(S)).numpy()
            nearest = near[:, 0].bincount(minlength=len(S)).numpy()
            found.append(DirectionHubs(label, k, counts, skewness(counts), null, nearest, first))
        return cls(tuple(found))


def skewness(counts: npt.NDArray[np.int64]) -> float:
    """E (N − μ)³ / σ³; 0 where all are equal."""
    deviation = counts - counts.mean()
    sigma = float(np.sqrt(np.square(deviation).mean()))
    return float((deviation**3).mean() / sigma**3) if sigma > 0 else 0.0


def null_skewness(m: int, k: int) -> float:
    """Return the 99th percentile of the skewness where each of m queries draws k of m candidates by lot."""
    rng = np.random.default_rng(0)
    return float(np.quantile([skewness(rng.binomial(m, k / m, m)) for _ in range(_DRAWS)], 0.99))


def null_first(m: int) -> float:
    """Return the 99th percentile of the share of queries with one nearest where it is drawn by lot."""
    rng = np.random.default_rng(0)
    return float(np.quantile([rng.multinomial(m, np.full(m, 1 / m)).max() for _ in range(_DRAWS)], 0.99) / m)
