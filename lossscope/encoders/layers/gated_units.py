"""Units of video models with several experts: maps to a joint width, and gates of each number by the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class Reduced(nn.Module):
    """unit(W x + b): the features of an expert at the joint width. Name: fc."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, dim)

    def forward(self, x: Tensor) -> Tensor:
        return normalize(self.fc(x), dim=-1)


class GatedUnit(nn.Module):
    """unit(y ∘ σ(BN(G y + g))), y = W x + b: (n, width) -> (n, dim). Names: fc, cg.fc, cg.batch_norm.

    Source: Miech et al. 2018 (gated embedding unit).
    """

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, dim)
        self.cg = _Context(dim)

    def forward(self, x: Tensor) -> Tensor:
        return normalize(self.cg(self.fc(x)), dim=-1)


class MaskedUnit(nn.Module):
    """unit(x ∘ σ(BN(mask) + BN₂(G x + g))): an expert gated by what the others make of it.

    Names: cg.fc, cg.batch_norm, cg.batch_norm2. Source: Liu et al. 2019 (collaborative gating).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.cg = _MaskedContext(dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return normalize(self.cg(x, mask), dim=-1)


class _Context(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.batch_norm = nn.BatchNorm1d(dim)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.batch_norm(self.fc(x)))


class _MaskedContext(_Context):
    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.batch_norm2 = nn.BatchNorm1d(dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        return x * torch.sigmoid(self.batch_norm(mask) + self.batch_norm2(self.fc(x)))
