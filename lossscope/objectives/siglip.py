"""SigLIP: a sigmoid for each pair instead of a softmax over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import logsigmoid

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class SigLIP(LossObjective):
    """l_q = Σ_c log(1 + exp(−z_qc (scale s_qc + bias))), z = 1 on matches, −1 elsewhere.

    The sum is over the valid candidates. A row without a positive or without a negative is left out, as everywhere.
    W: −z scale sigmoid(−z (scale s + bias)), with respect to the cosine.
    Counted: |W|.
    Training: 0.5 (sum i2t + sum t2i) / B: both directions have the same terms, so it is their sum over all pairs of the
    batch / B. Scale and bias are learnt with the encoder unless learn=false.
    Defaults: scale 10 and bias −10 at the start, as in the paper.
    Source: Zhai et al. 2023, eq. 1 and algorithm 1.
    """

    scale: float = 10.0  # factor on similarities, at the start of training if it is learnt
    bias: float = -10.0  # added to scaled similarities, likewise
    learn: bool = True  # learn scale and bias in training
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="pairs")

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InputError(f"scale must be > 0; got {self.scale}")

    @property
    def learnable(self) -> Mapping[str, float]:
        """Scale and bias."""
        return {"scale": self.scale, "bias": self.bias} if self.learn else {}

    def with_learnt(self, learnt: Mapping[str, float]) -> SigLIP:
        """Return a copy with another scale and bias. Raises InputError unless the scale is > 0."""
        return replace(self, scale=learnt.get("scale", self.scale), bias=learnt.get("bias", self.bias))

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        return self._terms(S, mask)[0].masked_fill(~mask.valid, 0).sum(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        terms, z = self._terms(S, mask)
        wrong = -terms.neg().expm1()  # 1 − exp(−term) = sigmoid(−z logit)
        return terms.masked_fill(~mask.valid, 0).sum(1), wrong.mul_(z).mul_(-self.scale)

    def _terms(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """(q, c) the terms of the sum, and z; logsigmoid is exact where softplus switches to a linear function."""
        z = mask.match.to(S.dtype).mul_(2).sub_(1)
        return -logsigmoid(z * (self.scale * S + self.bias)), z
