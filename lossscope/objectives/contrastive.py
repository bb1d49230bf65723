"""Contrastive loss: positives are pulled together and negatives pushed out to a margin, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from lossscope.core.similarity import Mask, euclidean
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class Contrastive(LossObjective):
    """l_q = Σ_p ½ d_p² + Σ_n ½ max(0, margin − d_n)², d = √(2 − 2s).

    distance=cosine, with δ = 1 − s: l_q = Σ_p δ_p + Σ_n max(0, margin − δ_n), that is max(0, s_n − (1 − margin)).
    W: −1 on every positive in both forms (½ d² = 1 − s); on a negative inside the margin (margin − d)/d, or 1 (cosine).
    A negative at d = 0 has W = 0, as no direction is defined there, and up to margin/d close to it.
    Counted: |W|.
    Training: 0.5 (sum i2t + sum t2i): both directions have the same pairs, so each pair counts once.
    Defaults: margin 1, that of pytorch-metric-learning (in the cosine form its neg_margin is 1 − margin, 0); the paper
    sets it for each problem, on vectors of any length.
    Source: Hadsell, Chopra & LeCun 2006, eq. 4; cosine: Wang et al. 2019 (multi-similarity), λ = 1 − margin there.
    """

    distance: Literal["euclidean", "cosine"] = "euclidean"  # of a pair: √(2 − 2s), or 1 − s
    margin: float = 1.0  # distance from which negatives are not pushed
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5)

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        if self.distance == "cosine":
            push = (self.margin - (1 - S)).relu()
        else:
            push = (self.margin - euclidean(S)).relu().square() / 2
        return ((1 - S) * mask.positives).sum(1) + (push * mask.negatives).sum(1)
