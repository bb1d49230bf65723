"""Which candidates are near too many queries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.hub_counts import number_of_hubs, share_of_hubs, skewness

from .alignment import Alignment
from .patient import Patient

_NEIGHBOURS = 10
_DRAWS = 50


@dataclass(frozen=True)
class DirectionHubs:
    """k-occurrences of the candidates of one direction."""

    label: str
    k: int  # neighbours of a query that are counted
    skewness: float  # of the number of queries that have a candidate among their k nearest
    null: float  # 99th percentile of the skewness if neighbours are random
    firsts: npt.NDArray[np.int64]  # (m,) number of queries whose nearest is the candidate
    share_of_hubs: float  # share of the queries whose nearest is among 1 % of the candidates
    null_first: float  # 99th percentile of the largest of these, as a share, if the nearest is random

    @property
    def candidates(self) -> npt.NDArray[np.int64]:
        """The 1 % of the candidates that are the nearest most often, at least one."""
        return np.argsort(self.firsts)[::-1][: number_of_hubs(len(self.firsts))]

    @property
    def largest_share(self) -> float:
        """Largest share of the queries with the same nearest candidate."""
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
        for label, S, valid in alignment.rows_of_directions:
            near = S.masked_fill(~valid, -np.inf).topk(k, dim=1).indices
            counts, nearest = (x.bincount(minlength=len(S)) for x in (near.flatten(), near[:, 0]))
            skew, share = (
                float(skewness(counts[None].double()).nan_to_num(0.0)),
                float(share_of_hubs(nearest[None].double())),
            )
            found.append(DirectionHubs(label, k, skew, null, nearest.numpy(), share, first))
        return cls(tuple(found))


def null_skewness(m: int, k: int) -> float:
    """Return the 99th percentile of the skewness if each of m queries draws k of m candidates at random."""
    rng = np.random.default_rng(0)
    draws = torch.from_numpy(np.stack([rng.binomial(m, k / m, m) for _ in range(_DRAWS)])).double()
    return float(np.quantile(skewness(draws).nan_to_num(0.0).numpy(), 0.99))


def null_first(m: int) -> float:
    """Return the 99th percentile of the largest share of queries with one nearest, if the nearest is random."""
    rng = np.random.default_rng(0)
    return float(np.quantile([rng.multinomial(m, np.full(m, 1 / m)).max() for _ in range(_DRAWS)], 0.99) / m)
