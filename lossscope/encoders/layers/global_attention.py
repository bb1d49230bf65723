"""One vector for a set of regions or words, by attention to their mean (SGRAF's global vectors)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .initialisation import init_xavier
from .scan_towers import unit


class RegionSummary(nn.Module):
    """unit(Σ_r w_r v_r), w = softmax_r(c' (D(tanh(BN(A v_r + a))) ∘ D(tanh(BN(B v̄ + b)))) + e): (n, R, D) -> (n, D).

    The first batch norm has one channel for each region, so there must be exactly `regions`; the second has one for
    each dimension. D is dropout. Names as in the released files. Source: Diao et al. 2021.
    """

    def __init__(self, dim: int, regions: int, dropout: float) -> None:
        super().__init__()
        activation = (nn.Tanh(), nn.Dropout(dropout))
        self.embedding_local = nn.Sequential(init_xavier(nn.Linear(dim, dim)), nn.BatchNorm1d(regions), *activation)
        self.embedding_global = nn.Sequential(init_xavier(nn.Linear(dim, dim)), nn.BatchNorm1d(dim), *activation)
        self.embedding_common = nn.Sequential(init_xavier(nn.Linear(dim, 1)))

    def forward(self, regions: Tensor) -> Tensor:
        local, pooled = self.embedding_local(regions), self.embedding_global(regions.mean(1))
        weights = self.embedding_common(local * pooled[:, None]).softmax(1)
        return unit((weights * regions).sum(1))


class WordSummary(nn.Module):
    """RegionSummary for words, without batch norm, over the present ones: (m, W, D), mask (m, W) -> (m, D)."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        activation = (nn.Tanh(), nn.Dropout(dropout))
        self.embedding_local = nn.Sequential(init_xavier(nn.Linear(dim, dim)), *activation)
        self.embedding_global = nn.Sequential(init_xavier(nn.Linear(dim, dim)), *activation)
        self.embedding_common = nn.Sequential(init_xavier(nn.Linear(dim, 1)))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        present = mask[:, :, None]
        mean = (words * present).sum(1) / present.sum(1)
        local, pooled = self.embedding_local(words), self.embedding_global(mean)
        agreement = self.embedding_common(local * pooled[:, None])
        weights = agreement.masked_fill(~present, -torch.inf).softmax(1)
        return unit((weights * words).sum(1))
