"""How exactly can a loss be compared with itself: as float64 can, or as the type that it casts to?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Tolerances:
    """Differences that are none, in units of the largest entry, and the step of finite differences."""

    same: float  # rounding in another order of summation, no more
    step: float  # of a similarity, from which the slope of the values is computed
    slope: float  # of W from that slope


_USUAL = Tolerances(1e-9, 1e-6, 1e-5)
_OF_TYPE = {torch.float32: Tolerances(1e-5, 5e-3, 1e-2)}  # of losses that cast S or the embeddings, as many do


def tolerances_of(objective: Any) -> Tolerances:
    """Return the tolerances of an objective, by the type in which it computes."""
    return _OF_TYPE.get(getattr(objective, "computed_in", torch.float64), _USUAL)
