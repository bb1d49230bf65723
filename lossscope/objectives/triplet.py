"""Triplet loss, summed over all negatives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import CONVENTIONS, Convention
from lossscope.core.weights import Weights
from lossscope.errors import InputError

from ._formulas import positive_of
from ._several_positives import Taken, over_positives
from .base import LossObjective, Traits
from .counting.hinge import HingeRule

_TRAITS = Traits(conventions=CONVENTIONS, statistics=("C_q", "C_q_all", "C_B", "C_0"))


@dataclass(frozen=True)
class Triplet(LossObjective):
    """l_q = Σ_n max(0, margin − s₊ + s_n).

    Every negative inside the margin has weight 1; one exactly at the margin has none.
    W: +1 on each violating negative, minus their number on the positive.
    Counted: 1 per violating negative. Convention `released` of t2i counts per image instead of per caption, as the
    released counter does (E1).
    Several positives: `positive` says whether a query compares the hardest of them, a random one, or all (the mean).
    Source: Bleeker & de Rijke 2022, eq. 3 and 9b; Faghri et al. 2018, eq. 5 (there over both directions).
    """

    margin: float = 0.2  # in similarity
    positive: Taken | None = None  # of several: hardest, random or all; none: several are refused

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Its batches may have several positives a query, where `positive` says which it takes."""
        return replace(_TRAITS, positives="one" if self.positive is None else "many")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> HingeRule | None:
        return HingeRule(self.margin) if self.positive is None else None

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        return over_positives(super().__call__, S, mask, self.positive)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        violation = (self.margin - positive_of(S, mask) + S).relu()
        return violation.masked_fill(~mask.negatives, 0).sum(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        violation = (self.margin - positive_of(S, mask) + S).relu_().mul_(mask.negatives)
        W = (violation > 0).to(S.dtype)
        return violation.sum(1), W.scatter_(1, mask.first_positive, -W.sum(1, keepdim=True))

    @property
    def paper_scale(self) -> float:
        return 1.0

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        W = self(S, mask).W
        if convention == "released" and mask.direction == "t2i":
            return counted_from_weights(W.clamp(min=0).T, mask.t())
        return counted_from_weights(W.abs(), mask)
