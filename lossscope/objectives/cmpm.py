"""CMPM: cross-modal projection matching, the divergence between predicted and true matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class CMPM(LossObjective):
    """l_q = Σ_c p_c (log p_c − log(t_c + floor)), p = softmax(scale S_q), t = match/|P|.

    The softmax is over the valid candidates. The paper projects an image embedding x of any length on unit captions;
    scale replaces |x|, which is no function of the cosine.
    W: scale p_c (g_c − Σ_k p_k g_k), g_c = log p_c − log(t_c + floor); a negative whose g is below that mean is pulled.
    Counted: |W|.
    Training: mean i2t + mean t2i.
    Defaults: floor 1e-8 as released (where the outer logarithm has another 1e-8, left out here); scale 1 is OUR choice,
    the formula at unit norm. Many copies of the loss divide match by √|P|, the same where |P| = 1.
    Source: Zhang & Lu 2018, the CMPM loss.
    """

    scale: float = 1.0  # factor on similarities, in place of the length of the query embedding
    floor: float = 1e-8  # added to the true matches before the logarithm
    traits: ClassVar[Traits] = Traits(positives="many", reduction="mean")

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.floor > 0):
            raise InputError(f"scale and floor must be > 0; got {self.scale} and {self.floor}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        p, log_ratio = self._predict(S, mask)
        return (p * log_ratio).sum(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        p, log_ratio = self._predict(S, mask)
        values = (p * log_ratio).sum(1)
        return values, log_ratio.sub_(values[:, None]).mul_(p).mul_(self.scale)

    def _predict(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """(q, c) p, and g = log p − log(t + floor); both are 0 on candidates that are not valid."""
        log_p = (self.scale * S).masked_fill(~mask.valid, -torch.inf).log_softmax(1)
        truth = mask.positives / mask.positives.sum(1, keepdim=True).to(S.dtype)
        return log_p.exp(), (log_p - (truth + self.floor).log()).masked_fill(~mask.valid, 0)
