"""Ranked list loss: pull positives into a ball around the query, push negatives out of a larger one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, euclidean
from lossscope.core.stop_gradient import stop_gradient
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class RankedList(LossObjective):
    """l_q = (1 − lam) (1/|P*|) Σ_{P*} (d_p − (alpha − margin)) + lam Σ_{N*} (w_n / Σ w) (alpha − d_n), d = √(2 − 2s).

    P* = {p: d_p > alpha − margin}, N* = {n: d_n < alpha}, w_n = exp(T (alpha − d_n)); an empty set gives 0.
    The w are constants, as in the released code, which applies them to the gradient only. The nearest negatives have
    the largest w.
    W: −(1 − lam) / (|P*| d_p) on P*, lam (w_n / Σ w) / d_n on N*; 0 at d_n = 0, where no direction is defined.
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i). In the paper only the query has a gradient; here, as in the released code, both
    ends have one. The released code also weights the queries by their Σ w + |P*|; the paper and this code average them.
    Defaults: margin 0.4 and alpha 1 + margin/2, of the released simpler version; T 10, as in its calls (its settings
    file has 12); lam 0.5, so that both halves have the same weight.
    Source: Wang et al. 2019, ranked list loss: L_P, L_N and L_RLL.
    """

    alpha: float = 1.2  # distance beyond which negatives are not pushed
    margin: float = 0.4  # distance between the two balls
    T: float = 10.0  # how much more near negatives weigh
    lam: float = 0.5  # share of the negatives in the loss
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not 0 <= self.margin <= self.alpha:
            raise InputError(f"margin must be >= 0 and at most alpha; got {self.margin} and {self.alpha}")
        if not (self.T >= 0 and 0 <= self.lam <= 1):
            raise InputError(f"T must be >= 0 and lam in [0, 1]; got {self.T} and {self.lam}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        d = euclidean(S)
        far = mask.positives & (d > self.alpha - self.margin)
        pull = ((d - (self.alpha - self.margin)) * far).sum(1) / far.sum(1).clamp(min=1)
        near = mask.negatives & (d < self.alpha)
        gap = self.alpha - d
        share = stop_gradient(
            (self.T * gap).masked_fill(~near, -torch.inf).softmax(1).nan_to_num(0)
        )  # NaN: none is near
        return (1 - self.lam) * pull + self.lam * (share * gap).sum(1)
