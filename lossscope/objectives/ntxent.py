"""NT-Xent (InfoNCE): cross-entropy of the positive over all candidates at a temperature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import CONVENTIONS, Convention
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of, repeat_positive
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class NTXent(LossObjective):
    """l_q = −log softmax(S_q / tau)[+].

    The softmax is over ALL valid candidates, the positive included.
    W: (softmax − match) / tau.
    Counted: the softmax probability of each negative (without 1/tau), and 1 − p₊ on the positive.
    Training: 0.5 (mean i2t + mean t2i).
    Source: Bleeker & de Rijke 2022, eq. 4 with the denominator of eq. 11 and of the released code.
    """

    tau: float = 0.1  # temperature
    traits: ClassVar[Traits] = Traits(directions=0.5, reduction="mean", conventions=CONVENTIONS, takes_terms=True)

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise InputError(f"tau must be > 0; got {self.tau}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SoftmaxRule:
        return SoftmaxRule(1 / self.tau)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        logits, _ = repeat_positive((S / self.tau).masked_fill(~mask.valid, -torch.inf), mask)
        return logits.logsumexp(1) - positive_of(S, mask).squeeze(1) / self.tau

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        logits, more = repeat_positive(S / self.tau, mask)
        values, gradient = cross_entropy(logits, mask)
        return values if more is None else values + more, gradient.div_(self.tau)

    @property
    def paper_scale(self) -> float:
        return 1 / self.tau

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        W = self(S, mask).W
        counted = counted_from_weights(W.abs() * self.tau, mask)
        return replace(counted, excludes_equal=convention == "released")
