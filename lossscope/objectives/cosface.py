"""CosFace: softmax over class vectors, with a margin on the cosine to the item's own class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import Convention
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class CosFace(LossObjective):
    """l_q = −log softmax(scale z)[+], z₊ = s₊ − margin, z_n = s_n.

    The softmax is over ALL valid candidates. With margin 0 it is ntxent at tau = 1/scale, the normalised softmax.
    W: scale (softmax − match).
    Counted: the softmax probability of each negative (without scale), and 1 − p₊ on the positive.
    Training: mean i2t + mean t2i, ours: the paper has one direction, items against all class vectors.
    Defaults: the paper's, which are those of pytorch-metric-learning.
    Source: Wang et al. 2018, eq. 4.
    """

    margin: float = 0.35  # in similarity
    scale: float = 64.0  # factor on cosines, 1/tau
    traits: ClassVar[Traits] = Traits(reduction="mean")

    def __post_init__(self) -> None:
        if not (self.margin >= 0 and self.scale > 0):
            raise InputError(f"margin must be >= 0 and scale > 0; got {self.margin} and {self.scale}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SoftmaxRule:
        return SoftmaxRule(self.scale, lead=-self.scale * self.margin)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        logits = self._logits(S, mask)
        return logits.masked_fill(~mask.valid, -torch.inf).logsumexp(1) - positive_of(logits, mask).squeeze(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        values, gradient = cross_entropy(self._logits(S, mask), mask)
        return values, gradient.mul_(self.scale)

    @property
    def paper_scale(self) -> float:
        return self.scale

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        return counted_from_weights(self(S, mask).W.abs() / self.scale, mask)

    def _logits(self, S: Tensor, mask: Mask) -> Tensor:
        """(q, c) scale z."""
        return self.scale * S.scatter(1, mask.first_positive, positive_of(S, mask) - self.margin)
