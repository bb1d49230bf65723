"""SmoothAP: one minus a smooth average precision, for queries with one or several positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, check_inputs
from lossscope.core.similarity import Mask
from lossscope.core.types import CONVENTIONS, Convention
from lossscope.errors import InputError

from ._formulas import mask_invalid
from .base import LossObjective, Traits
from .counting.smooth_rank import SmoothRankRule


@dataclass(frozen=True)
class SmoothAP(LossObjective):
    """l_q = 1 − (1/|P|) Σ_{i∈P} (1 + A_i) / (1 + A_i + C_i), G_ij = sigmoid((s_j − s_i) / tau).

    A_i = Σ_{j∈P, j≠i} G_ij, C_i = Σ_{n∈N} G_in. Time and memory are (q, p, c), not c x c for each query.
    W: by autograd; rows sum to 0. With one positive: G_n (1 − G_n) / (tau (1 + C)²) on each negative, minus their sum
    on the positive.
    Counted: per triplet (i, j), j any other valid candidate: G_ij (1 − G_ij) / R_i², R_i = 1 + A_i + C_i, divided by
    |P|. Convention `text` includes 1/tau as printed, `released` and `corrected` do not (E3); `released` of t2i uses
    rows k·q … k·q + k − 1 for query q (E2), k being the captions of an image.
    Training: 0.5 (mean i2t + mean t2i).
    Source: Brown et al. 2020; Bleeker & de Rijke 2022, eq. 5-8, 12-13.
    """

    tau: float = 0.01  # temperature of the sigmoid
    traits: ClassVar[Traits] = Traits(
        positives="many",
        directions=0.5,
        reduction="mean",
        conventions=CONVENTIONS,
        statistics=("C_q", "C_q_all", "C_0"),
    )

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise InputError(f"tau must be > 0; got {self.tau}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> SmoothRankRule:
        return SmoothRankRule(self.tau)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        index, present = _positions(mask.positives)
        G = self._above(S, mask, index)
        C = G.masked_fill(mask.positives[:, None, :], 0).sum(2)
        missed = C / (1 + G.sum(2))  # 1 - precision, without the rounding of 1 where C is small
        return (missed * present).sum(1) / present.sum(1)

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        usable = check_inputs(S, mask, self.traits.positives)
        released_t2i = convention == "released" and mask.direction == "t2i"
        index, present = _released_rows(mask) if released_t2i else _positions(mask.positives)
        with torch.no_grad():  # in place, as these blocks are most of the memory that counting needs
            weights = self._above(mask_invalid(S, mask), mask, index)
            rank = 1 + weights.sum(2, keepdim=True)
            weights.mul_(1 - weights).div_(rank.square())
            weights.mul_(present[:, :, None] & usable[:, None, None])
            if convention == "text":
                weights.div_(self.tau)
        divisor = mask.positives.sum(1).clamp(min=1).to(weights.dtype)
        return CountedWeights(weights, divisor, weights.sum((1, 2)) / divisor, ~usable)

    def _above(self, S: Tensor, mask: Mask, index: Tensor) -> Tensor:
        """(q, p, c) G_ij of each positive i and every other valid candidate j; 0 at j = i."""
        s_pos = S.gather(1, index)
        G = (S[:, None, :] - s_pos[:, :, None]).div_(self.tau).sigmoid_()
        absent = (~mask.valid)[:, None, :].expand(G.shape).scatter(2, index[:, :, None], True)
        return G.masked_fill(absent, 0.0)


def _positions(positives: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns of the positives of each row, (q, p) padded with column 0, and bool which are not padding."""
    number = positives.sum(1)
    rows, columns = positives.nonzero(as_tuple=True)
    slot = torch.arange(len(rows), device=rows.device) - (number.cumsum(0) - number)[rows]
    index = rows.new_zeros(len(positives), max(int(number.max()) if len(number) else 0, 1))
    present = torch.zeros_like(index, dtype=torch.bool)
    index[rows, slot] = columns
    present[rows, slot] = True
    return index, present


def _released_rows(mask: Mask) -> tuple[Tensor, Tensor]:
    """Return the rows that the released t2i counter uses for query q: k·q … k·q + k − 1 of the candidates (E2)."""
    queries, candidates = mask.match.shape
    k = max(queries // candidates, 1)
    index = torch.arange(queries, device=mask.match.device)[:, None] * k + torch.arange(k, device=mask.match.device)
    present = index < candidates
    return index.where(present, torch.zeros_like(index)), present
