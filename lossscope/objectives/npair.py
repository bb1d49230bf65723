"""N-pair: the multi-class N-pair loss, NT-Xent without a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class NPair(LossObjective):
    """l_q = log(1 + Σ_n exp(scale (s_n − s₊))).

    The formula of vlc, with another scale, reduction and count. The paper uses inner products of embeddings of any
    length; scale replaces the product of their norms. Its L2 penalty on these norms is no function of the cosine and is
    left out.
    W: scale e_n / (1 + Σ e) on negatives with e_n = exp(scale (s_n − s₊)); minus their sum on the positive.
    Counted: |W|.
    Training: mean i2t + mean t2i; the paper has one direction.
    Defaults: scale 1, the formula at unit norm.
    Source: Sohn 2016, eq. 6 and 7.
    """

    scale: float = 1.0  # factor on similarities, in place of the norms of the embeddings
    traits: ClassVar[Traits] = Traits(reduction="mean")

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InputError(f"scale must be > 0; got {self.scale}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SoftmaxRule:
        return SoftmaxRule(self.scale, factor=self.scale)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        gap = self.scale * (S - positive_of(S, mask)).masked_fill(mask.non_negatives, -torch.inf)
        return torch.cat([torch.zeros_like(gap[:, :1]), gap], dim=1).logsumexp(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        values, gradient = cross_entropy(S * self.scale, mask)
        return values, gradient.mul_(self.scale)
