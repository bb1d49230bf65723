"""Unified loss: a smooth triplet loss over all negatives, between hardest-negative triplet and contrastive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import InputError
from ..similarity import Mask
from .base import Loss, positive_of


@dataclass(frozen=True)
class Unified(Loss):
    """l_q = (1/gamma) log(1 + Σ_n exp(gamma (s_n − s₊ + margin))).

    W: e_n / (1 + Σ e) on negatives with e_n = exp(gamma (s_n − s₊ + margin)); minus their sum on the positive.
    Counted: W itself, which is in [0, 1]. gamma → ∞ gives triplet_sh; gamma · unified(margin=0) = vlc.
    Source: Li et al. 2022, eq. 5 (gamma 60 for VSE++ on regions, 50 for the other models).
    """

    margin: float = 0.2
    gamma: float = 60.0

    def __post_init__(self) -> None:
        if not (self.gamma > 0 and self.margin >= 0):
            raise InputError(f"gamma must be > 0 and margin >= 0; got {self.gamma} and {self.margin}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        excess = (S - positive_of(S, mask) + self.margin).masked_fill(~mask.negatives, -torch.inf)
        exponents = torch.cat([torch.zeros_like(excess[:, :1]), self.gamma * excess], dim=1)
        return exponents.logsumexp(1) / self.gamma
