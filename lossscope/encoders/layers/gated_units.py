"""Units of video models with several experts: maps to a joint width, and gates of each coordinate by the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class UnitLinear(nn.Module):
    """unit(W x + b): the features of an expert at the joint width. Name: fc."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, dim)

    def forward(self, x: Tensor) -> Tensor:
        return normalize(self.fc(x), dim=-1)


class GatedEmbeddingUnit(nn.Module):
    """unit(y ∘ σ(BN(G y + g))), y = W x + b: (n, width) -> (n, dim). Names: fc, cg.fc, cg.batch_norm.

    Source: Miech et al. 2018 (gated embedding unit).
    """

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, dim)
        self.cg = _ContextGating(dim)

    def forward(self, x: Tensor) -> Tensor:
        return normalize(self.cg(self.fc(x)), dim=-1)


class CollaborativeGatingUnit(nn.Module):
    """unit(x ∘ σ(BN(mask) + BN₂(G x + g))): an expert gated by a mask computed from the other experts.

    Names: cg.fc, cg.batch_norm, cg.batch_norm2. Source: Liu et al. 2019 (collaborative gating).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.cg = _MaskedContextGating(dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return normalize(self.cg(x, mask), dim=-1)


class _ContextGating(nn.Module):
    """x ∘ σ(BN(G x + g))."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.batch_norm = nn.BatchNorm1d(dim)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.batch_norm(self.fc(x)))


class _MaskedContextGating(_ContextGating):
    """x ∘ σ(BN(mask) + BN₂(G x + g))."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.batch_norm2 = nn.BatchNorm1d(dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        return x * torch.sigmoid(self.batch_norm(mask) + self.batch_norm2(self.fc(x)))
