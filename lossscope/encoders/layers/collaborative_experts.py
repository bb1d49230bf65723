"""CE behind the pooling: experts of a video that gate each other, and the views of a caption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from .gated_units import GatedUnit, MaskedUnit, Reduced

Gating = Literal["sequential", "simultaneous"]
_NO_PAIR = 1e-11  # added to the number of pairs, which is 0 for a missing expert


class Collaboration(nn.Module):
    """e_m ← unit(e_m ∘ σ(BN(mask_m) + BN₂(F_m e_m))), mask_m = mean of G([e_m, e_k]) over experts k that are there.

    e_m: unit(W_m x + b) of the pooled features of expert m; k = m counts too. G: a linear map of both, then twice batch
    norm, Mish and a linear map, the same for all pairs; a training step sees the batch norms once for each pair.
    A missing expert has mask 0. gating: `sequential` puts each gated expert in the place of the old one before the
    next is gated, `simultaneous` gates all from the ungated ones. Names by the place of an expert in the order of
    names: moe_fc, video_dim_reduce.{m}, g_reason_1, g_reason_shared.{0,2,3,5}, video_GU.{m}, text_GU.{m}.
    Source: Liu et al. 2019; mish: Misra 2020.
    """

    def __init__(self, widths: Sequence[int], text: int, dim: int, gating: Gating) -> None:
        super().__init__()
        self.gating = gating
        self.moe_fc = nn.Linear(text, len(widths))
        self.video_dim_reduce = nn.ModuleList(Reduced(width, dim) for width in widths)
        self.g_reason_1 = nn.Linear(2 * dim, dim)
        shared = [layer for _ in range(2) for layer in (nn.BatchNorm1d(dim), nn.Mish(), nn.Linear(dim, dim))]
        self.g_reason_shared = nn.Sequential(*shared)
        self.video_GU = nn.ModuleList(MaskedUnit(dim) for _ in widths)
        self.text_GU = nn.ModuleList(GatedUnit(text, dim) for _ in widths)

    def videos(self, pooled: Sequence[Tensor], there: Tensor) -> Tensor:
        """Pooled features of M experts, (n, width of each), and (n, M) 1 where there -> (n, M, dim) unit vectors."""
        before = [reduce(x) for reduce, x in zip(self.video_dim_reduce, pooled, strict=True)]
        experts = list(before)
        for m, gate in enumerate(self.video_GU):
            others = experts if self.gating == "sequential" else before
            experts[m] = gate(experts[m], self._mask(others, there, m))
        return torch.stack(experts, 1)

    def texts(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        """Pooled words (n, width) -> (n, M, dim) unit vectors and (n, M) weights that sum to 1."""
        views = torch.stack([unit(pooled) for unit in self.text_GU], 1)
        return views, self.moe_fc(pooled).softmax(1)

    def _mask(self, experts: Sequence[Tensor], there: Tensor, m: int) -> Tensor:
        """(n, dim): what the pairs of expert m say of it on average."""
        pairs = there[:, m : m + 1] * there
        said = torch.stack([self._pair(experts[m], other) for other in experts], 1)
        return (said * pairs[..., None]).sum(1) / (pairs.sum(1, keepdim=True) + _NO_PAIR)

    def _pair(self, one: Tensor, other: Tensor) -> Tensor:
        return self.g_reason_shared(self.g_reason_1(torch.cat([one, other], 1)))  # type: ignore[no-any-return]
