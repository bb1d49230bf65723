"""InfoNCE as CLIP trains with it: cross-entropy over all candidates at a learnt temperature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import Convention
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of, repeat_positive
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class InfoNCE(LossObjective):
    """l_q = −log softmax(S_q / tau)[+].

    The softmax is over ALL valid candidates. It is ntxent with a learnt scale 1/tau of at most scale_max.
    W: (softmax − match) / tau, with respect to the cosine.
    Counted: the softmax probability of each negative (without 1/tau), and 1 − p₊ on the positive.
    Training: 0.5 (mean i2t + mean t2i); the scale 1/tau is learnt with the encoder unless learn=false.
    Defaults: tau 0.07 at the start and a scale of at most 100, as CLIP.
    Source: van den Oord et al. 2018, eq. 4; Radford et al. 2021, figure 3 and section 2.5.
    """

    tau: float = 0.07  # temperature, at the start of training if it is learnt
    learn: bool = True  # learn the scale 1/tau in training
    scale_max: float = 100.0  # largest learnt scale
    traits: ClassVar[Traits] = Traits(directions=0.5, reduction="mean", takes_terms=True)

    def __post_init__(self) -> None:
        if not (self.tau > 0 and self.scale_max > 0):
            raise InputError(f"tau and scale_max must be > 0; got {self.tau} and {self.scale_max}")
        if self.learn and self.tau * self.scale_max < 1 - 1e-9:
            what = f"tau must be >= 1/scale_max = {1 / self.scale_max:g} where it is learnt; got {self.tau}"
            raise InputError(f"{what}. Raise scale_max, or keep tau with learn=false")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def learnable(self) -> Mapping[str, float]:
        """The scale 1/tau."""
        return {"scale": 1 / self.tau} if self.learn else {}

    def with_learnt(self, learnt: Mapping[str, float]) -> InfoNCE:
        """Return a copy with another scale, clamped to scale_max. Raises InputError unless it is > 0."""
        scale = learnt.get("scale")
        if scale is None:
            return self
        if not scale > 0:
            raise InputError(f"scale must be > 0; got {scale}")
        return replace(self, tau=1 / min(scale, self.scale_max))

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
        return counted_from_weights(self(S, mask).W.abs() * self.tau, mask)
