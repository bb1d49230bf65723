"""Triplet loss with the hardest negative of the batch (Triplet SH, Triplet-HN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.types import CONVENTIONS
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class TripletSH(LossObjective):
    """l_q = max(0, margin − s₊ + max_n s_n).

    If several negatives are the hardest, the first one has the weight (E11).
    W: +1 on the hardest negative, −1 on the positive, if violating.
    Counted: 1 if violating.
    Source: Bleeker & de Rijke 2022, eq. 1, 9a and 10; Faghri et al. 2018, eq. 6.
    """

    margin: float = 0.2  # in similarity
    traits: ClassVar[Traits] = Traits(
        conventions=CONVENTIONS, statistics=("C_q", "C_q_all", "C_B", "C_0"), needs_warmup=True
    )

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> HardestNegativeRule:
        return HardestNegativeRule(self)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        hardest, _ = hardest_negative(S, mask)
        return (self.margin - positive_of(S, mask) + hardest).relu().squeeze(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        hardest, column = hardest_negative(S, mask)
        value = (self.margin - positive_of(S, mask) + hardest).relu_()
        violates = (value > 0).to(S.dtype)
        W = torch.zeros_like(S).scatter_(1, column, violates).scatter_(1, mask.first_positive, -violates)
        return value.squeeze(1), W
