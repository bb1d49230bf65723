"""CE after pooling: experts of a video that gate each other, and the views of a caption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from .gated_units import CollaborativeGatingUnit, GatedEmbeddingUnit, UnitLinear

Gating = Literal["sequential", "simultaneous"]
_EPS = 1e-11  # added to the number of pairs, which is 0 for a missing expert


class CollaborativeGating(nn.Module):
    """e_m ← unit(e_m ∘ σ(BN(mask_m) + BN₂(F_m e_m))), mask_m = mean of G([e_m, e_k]) over the present experts k.

    e_m: unit(W_m x + b) of the pooled features of expert m; k = m counts too. G: a linear map of both, then twice batch
    norm, Mish and a linear map, shared by all pairs; a training step updates its batch norms once for each pair.
    A missing expert has mask 0. Parameters are named by the index of an expert in the order of names: moe_fc,
    video_dim_reduce.{m}, g_reason_1, g_reason_shared.{0,2,3,5}, video_GU.{m}, text_GU.{m}.
    Source: Liu et al. 2019; mish: Misra 2020.

    Args:
        widths: of the pooled features of each expert.
        text: width of the pooled words.
        dim: joint width.
        gating: `sequential` replaces each expert by the gated one before the next is gated, `simultaneous` gates all
            from the ungated ones.
    """

    def __init__(self, widths: Sequence[int], text: int, dim: int, gating: Gating) -> None:
        super().__init__()
        self.gating = gating
        self.moe_fc = nn.Linear(text, len(widths))
        self.video_dim_reduce = nn.ModuleList(UnitLinear(width, dim) for width in widths)
        self.g_reason_1 = nn.Linear(2 * dim, dim)
        shared = [layer for _ in range(2) for layer in (nn.BatchNorm1d(dim), nn.Mish(), nn.Linear(dim, dim))]
        self.g_reason_shared = nn.Sequential(*shared)
        self.video_GU = nn.ModuleList(CollaborativeGatingUnit(dim) for _ in widths)
        self.text_GU = nn.ModuleList(GatedEmbeddingUnit(text, dim) for _ in widths)

    def encode_videos(self, pooled: Sequence[Tensor], present: Tensor) -> Tensor:
        """Return (n, M, dim) unit vectors of the M experts of videos.

        Args:
            pooled: features of each expert, (n, width).
            present: (n, M) 1 where a video has the expert, else 0.
        """
        ungated = [reduce(x) for reduce, x in zip(self.video_dim_reduce, pooled, strict=True)]
        experts = list(ungated)
        for m, gate in enumerate(self.video_GU):
            others = experts if self.gating == "sequential" else ungated
            experts[m] = gate(experts[m], self._mask(others, present, m))
        return torch.stack(experts, 1)

    def encode_texts(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, M, dim) unit vectors and (n, M) weights that sum to 1, from pooled words (n, width)."""
        views = torch.stack([unit(pooled) for unit in self.text_GU], 1)
        return views, self.moe_fc(pooled).softmax(1)

    def _mask(self, experts: Sequence[Tensor], present: Tensor, m: int) -> Tensor:
        """Return (n, dim): the mean of G over the pairs of expert m."""
        pairs = present[:, m : m + 1] * present
        outputs = torch.stack([self._pair(experts[m], other) for other in experts], 1)
        return (outputs * pairs[..., None]).sum(1) / (pairs.sum(1, keepdim=True) + _EPS)

    def _pair(self, first: Tensor, second: Tensor) -> Tensor:
        return self.g_reason_shared(self.g_reason_1(torch.cat([first, second], 1)))  # type: ignore[no-any-return]
