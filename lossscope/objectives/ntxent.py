"""NT-Xent (InfoNCE): cross-entropy of the positive over all candidates at a temperature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import Convention, Counted, single
from lossscope.core.similarity import Mask
from lossscope.core.weights import Reduction
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of
from .base import Loss
from .counting.softmax import Softmax


@dataclass(frozen=True)
class NTXent(Loss):
    """l_q = −log softmax(S_q / tau)[+].

    The softmax is over ALL valid candidates, the positive included.
    W: (softmax − match) / tau.
    Counted: the softmax probability of each negative (without 1/tau), and 1 − p₊ on the positive.
    Training: 0.5 (mean i2t + mean t2i).
    Source: Bleeker & de Rijke 2022, eq. 4 with the denominator of eq. 11 and of the released code.
    """

    tau: float = 0.1
    directions: ClassVar[float] = 0.5
    reduction: ClassVar[Reduction] = "mean"
    conventions: ClassVar[tuple[Convention, ...]] = ("corrected", "released", "text")

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise InputError(f"tau must be > 0; got {self.tau}")

    @property
    def differences(self) -> bool:
        return True

    @property
    def tiled(self) -> Softmax:
        return Softmax(1 / self.tau)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        logits = (S / self.tau).masked_fill(~mask.valid, -torch.inf)
        return logits.logsumexp(1) - positive_of(S, mask).squeeze(1) / self.tau

    def stated(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        values, gradient = cross_entropy(S / self.tau, mask)
        return values, gradient.div_(self.tau)

    def counted(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> Counted:
        self.require(convention)
        W = self(S, mask).W
        found = single(W.abs() * self.tau, mask)
        return replace(found, below=convention == "released")
