"""Circle loss: each similarity is weighted by how far it is from its optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.stop_gradient import stop_gradient
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class Circle(LossObjective):
    """l_q = log(1 + Σ_n exp(gamma a_n (s_n − margin)) · Σ_p exp(−gamma a_p (s_p − 1 + margin))).

    a_p = max(0, 1 + margin − s_p), a_n = max(0, s_n + margin).
    factors=held: a_p and a_n are constants, as in the paper's gradient and in public implementations. factors=attached:
    they are differentiated too, the exponents being gamma (s_n² − margin²) and gamma ((1 − s_p)² − margin²).
    W: held: gamma Z π_n a_n on negatives and −gamma Z π_p a_p on positives, with Z = 1 − exp(−l_q) and π the share in
    its own sum. attached, for a > 0: gamma Z π_n 2 s_n, which pulls a negative below 0, and −gamma Z π_p 2 (1 − s_p).
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i).
    Defaults: margin 0.25 and gamma 256, the paper's for faces (re-identification: 0.25 and 128; fine-grained retrieval:
    0.4 and 80, which are the defaults of pytorch-metric-learning).
    Source: Sun et al. 2020, sec. 3, with O_p = 1 + margin, O_n = −margin, Δ_p = 1 − margin, Δ_n = margin.
    """

    margin: float = 0.25  # similarity optima are 1 + margin for positives and −margin for negatives
    gamma: float = 256.0  # scale of the exponents
    factors: Literal["held", "attached"] = "held"  # whether a_p and a_n are constants or differentiated
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not self.gamma > 0:
            raise InputError(f"gamma must be > 0; got {self.gamma}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        a_p, a_n = (1 + self.margin - S).relu(), (S + self.margin).relu()
        if self.factors == "held":
            a_p, a_n = stop_gradient(a_p), stop_gradient(a_n)
        pull = (-self.gamma * a_p * (S - 1 + self.margin)).masked_fill(~mask.positives, -torch.inf)
        push = (self.gamma * a_n * (S - self.margin)).masked_fill(mask.non_negatives, -torch.inf)
        exponent = pull.logsumexp(1) + push.logsumexp(1)
        return torch.logaddexp(exponent, torch.zeros_like(exponent))
