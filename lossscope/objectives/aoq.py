"""Adaptive offline quintuplet loss: the hardest negative of the batch, weighted by one of the whole training set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import positive_of
from .base import LossObjective, Traits


@dataclass(frozen=True)
class AOQ(LossObjective):
    """l_q = (beta − (off − on)/alpha) [margin + on − s₊]₊ + [m_off + off − s₊]₊ + ½ Σ_x [m_off + x − s₊]₊.

    "on" is the similarity of the hardest negative of the batch (the first one if several are equal), "off" that of the
    query's offline negative, m_off is offline_margin. The two x are similarities without the query: of the offline
    negatives with each other, and of their partners with each other. They are in both directions, so each direction
    takes half. The weight of the first hinge has a gradient and is negative once off − on > alpha · beta.
    `mask.info["offline"]`, (q, c) whole numbers, marks the offline columns: 1 is off, 2 and 3 are x, 0 is online.
    Without it (a probe's batch, a diagram) off − on is the constant `gap` and only the first hinge is used.
    W: by autograd; rows sum to 0. Without offline columns: beta − gap/alpha on the hardest negative, minus that on the
    positive, if violating.
    Counted: |W|.
    Defaults: alpha 0.3, beta 1.5 and offline_margin 0 are the paper's; `gap` is ours.
    Source: Chen, Deng & Luo 2020, sections 3.2-3.3.
    """

    margin: float = 0.2  # of the first hinge, in similarity
    alpha: float = 0.3  # scale of off − on in the weight of the first hinge
    beta: float = 1.5  # weight of the first hinge where off = on
    offline_margin: float = 0.0  # of the other hinges, in similarity
    gap: float = 0.0  # off − on where a batch has no offline columns
    traits: ClassVar[Traits] = Traits(required_info=("offline",), needs_warmup=True)

    def __post_init__(self) -> None:
        if not (self.margin >= 0 and self.offline_margin >= 0 and self.alpha > 0):
            got = f"{self.margin}, {self.offline_margin} and {self.alpha}"
            raise InputError(f"margin and offline_margin must be >= 0 and alpha > 0; got {got}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        kind = mask.info.get("offline")
        s_pos = positive_of(S, mask)
        if kind is None:
            weight = S.new_full((1, 1), self.beta - self.gap / self.alpha)
            return (weight * self._online(S, mask.negatives, s_pos)[0]).squeeze(1)
        kind = kind * mask.negatives
        hinge, on = self._online(S, mask.negatives & (kind == 0), s_pos)
        off = (S * (kind == 1)).sum(1, keepdim=True)
        has_off = (kind == 1).any(1, keepdim=True)
        gap = torch.where(has_off, off - on, torch.full_like(on, self.gap))
        share = (kind == 1) + 0.5 * (kind >= 2)
        offline = ((self.offline_margin + S - s_pos).relu() * share).sum(1)
        return ((self.beta - gap / self.alpha) * hinge).squeeze(1) + offline

    def _online(self, S: Tensor, negatives: Tensor, s_pos: Tensor) -> tuple[Tensor, Tensor]:
        """(q, 1) hinge on the hardest online negative, and its similarity; 0 and s₊ in a row that has none."""
        candidates = S.detach().masked_fill(~negatives, -torch.inf)
        value, column = candidates.max(1, keepdim=True)
        on = torch.where(value.isfinite(), S.gather(1, column), s_pos)
        return (self.margin + on - s_pos).relu() * value.isfinite(), on
