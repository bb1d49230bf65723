"""VLC: the contrastive loss of vision-language pre-training, with a scale in place of a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import REPEATS, Mask
from lossscope.core.types import Convention
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of, repeat_positive
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class VLC(LossObjective):
    """l_q = log(1 + Σ_n exp(gamma (s_n − s₊))).

    NT-Xent with gamma = 1/tau, summed over both directions to train.
    W: gamma (softmax − match).
    Counted: the softmax probability of each negative; 1 − p₊ on the positive.
    Source: Li et al. 2022 (Unified loss), eq. 3-4.
    """

    gamma: float = 50.0  # scale, 1/tau
    traits: ClassVar[Traits] = Traits(takes_terms=True)

    def __post_init__(self) -> None:
        if not self.gamma > 0:
            raise InputError(f"gamma must be > 0; got {self.gamma}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SoftmaxRule:
        return SoftmaxRule(self.gamma)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        gap = (S - positive_of(S, mask)).masked_fill(~mask.negatives, -torch.inf)
        repeats = mask.info.get(REPEATS)
        repeated = torch.zeros_like(gap[:, :1]) if repeats is None else repeats.to(gap.dtype).log1p()[:, None]
        return torch.cat([repeated, self.gamma * gap], dim=1).logsumexp(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        logits, more = repeat_positive(S * self.gamma, mask)
        values, gradient = cross_entropy(logits, mask)
        return values if more is None else values + more, gradient.mul_(self.gamma)

    @property
    def paper_scale(self) -> float:
        return self.gamma

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        return counted_from_weights(self(S, mask).W.abs() / self.gamma, mask)
