"""DCL: decoupled contrastive learning, NT-Xent without the positive in the denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import positive_of
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class DCL(LossObjective):
    """l_q = −s₊/tau + log Σ_n exp(s_n / tau).

    The sum is over the negatives only; l_q may be negative.
    W: −1/tau on the positive, however similar it is already; softmax/tau over the negatives.
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i), ours; the paper adds up two views of one modality, and takes the negatives from
    both views, where here they are the other modality's.
    Defaults: tau 0.1, as released.
    Source: Yeh et al. 2022, decoupled contrastive loss (without the weights of DCLW).
    """

    tau: float = 0.1  # temperature
    traits: ClassVar[Traits] = Traits(directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise InputError(f"tau must be > 0; got {self.tau}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SoftmaxRule:
        return SoftmaxRule(1 / self.tau, lead=None, factor=1 / self.tau, pull=1 / self.tau)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        negatives = (S / self.tau).masked_fill(mask.non_negatives, -torch.inf)
        return negatives.logsumexp(1) - positive_of(S, mask).squeeze(1) / self.tau

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        share = (S / self.tau).masked_fill(mask.non_negatives, -torch.inf).softmax(1)
        return self.values(S, mask), share.scatter_(1, mask.first_positive, -1.0).div_(self.tau)
