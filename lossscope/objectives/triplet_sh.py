"""Triplet loss with the hardest negative of the batch (Triplet SH, Triplet-HN)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.types import CONVENTIONS
from lossscope.core.weights import Weights
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from ._several_positives import Taken, over_positives
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule

_TRAITS = Traits(conventions=CONVENTIONS, statistics=("C_q", "C_q_all", "C_B", "C_0"), needs_warmup=True)


@dataclass(frozen=True)
class TripletSH(LossObjective):
    """l_q = max(0, margin − s₊ + max_n s_n).

    If several negatives are the hardest, the first one has the weight (E11).
    W: +1 on the hardest negative, −1 on the positive, if violating.
    Counted: 1 if violating.
    Several positives: `positive` says whether a query compares the hardest of them (Hermans et al. 2017, eq. 5, batch
    hard), a random one, or all (the mean).
    Source: Bleeker & de Rijke 2022, eq. 1, 9a and 10; Faghri et al. 2018, eq. 6.
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
    def counting_rule(self) -> HardestNegativeRule | None:
        return HardestNegativeRule(self) if self.positive is None else None

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        return over_positives(super().__call__, S, mask, self.positive)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        hardest, _ = hardest_negative(S, mask)
        return (self.margin - positive_of(S, mask) + hardest).relu().squeeze(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        hardest, column = hardest_negative(S, mask)
        value = (self.margin - positive_of(S, mask) + hardest).relu_()
        violates = (value > 0).to(S.dtype)
        W = torch.zeros_like(S).scatter_(1, column, violates).scatter_(1, mask.first_positive, -violates)
        return value.squeeze(1), W
