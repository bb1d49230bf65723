"""One vector for a set of regions or words, weighed by how each agrees with their mean (SGRAF's global vectors)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .initialisation import xavier
from .scan_towers import unit


class RegionSummary(nn.Module):
    """unit(Σ_r w_r v_r), w = softmax_r(c' (D(tanh(BN(A v_r + a))) ∘ D(tanh(BN(B v̄ + b)))) + e): (n, R, D) -> (n, D).

    The first batch norm has one channel for each region slot, so there must be exactly `regions`; the second one for
    each dimension. D is dropout. Names as in the original files. Source: Diao et al. 2021.
    """

    def __init__(self, dim: int, regions: int, dropout: float) -> None:
        super().__init__()
        ends = (nn.Tanh(), nn.Dropout(dropout))
        self.embedding_local = nn.Sequential(xavier(nn.Linear(dim, dim)), nn.BatchNorm1d(regions), *ends)
        self.embedding_global = nn.Sequential(xavier(nn.Linear(dim, dim)), nn.BatchNorm1d(dim), *ends)
        self.embedding_common = nn.Sequential(xavier(nn.Linear(dim, 1)))

    def forward(self, regions: Tensor) -> Tensor:
        near, far = self.embedding_local(regions), self.embedding_global(regions.mean(1))
        weights = self.embedding_common(near * far[:, None]).softmax(1)
        return unit((weights * regions).sum(1))


class WordSummary(nn.Module):
    """The same for words, without batch norm, over those that are there: (m, W, D), mask (m, W) -> (m, D)."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        ends = (nn.Tanh(), nn.Dropout(dropout))
        self.embedding_local = nn.Sequential(xavier(nn.Linear(dim, dim)), *ends)
        self.embedding_global = nn.Sequential(xavier(nn.Linear(dim, dim)), *ends)
        self.embedding_common = nn.Sequential(xavier(nn.Linear(dim, 1)))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        there = mask[:, :, None]
        mean = (words * there).sum(1) / there.sum(1)
        near, far = self.embedding_local(words), self.embedding_global(mean)
        agreement = self.embedding_common(near * far[:, None])
        weights = agreement.masked_fill(~there, -torch.inf).softmax(1)
        return unit((weights * words).sum(1))
