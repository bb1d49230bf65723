"""Do a few candidates have most of the queries that candidates are counted for?"""

from __future__ import annotations

from torch import Tensor

_HUBS = 100  # one candidate in 100 is a hub


def number_of_hubs(candidates: int) -> int:
    """Return how many of the candidates are hubs: 1 %, at least one."""
    return max(1, candidates // _HUBS)


def share_of_hubs(number: Tensor) -> Tensor:
    """Return the share of the queries that the hubs have, (k,), the candidates with the largest numbers, (k, c)."""
    return number.topk(number_of_hubs(number.shape[1]), dim=1).values.sum(1) / number.sum(1)


def skewness(number: Tensor) -> Tensor:
    """Mean (N − N̄)³ / σ_N³ over the candidates, (k,), population moments of (k, c); NaN where all are equal.

    Source: Radovanović et al. 2010.
    """
    deviation = number - number.mean(1, keepdim=True)
    return deviation.pow(3).mean(1) / deviation.square().mean(1).pow(1.5)
