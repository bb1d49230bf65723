"""NetVLAD: a set of vectors as its residuals to a few learnt centres."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, normalize


class NetVLAD(nn.Module):
    """v_dk = Σ_n a_nk (x_nd − c_dk), unit over d for each k, then unit as a whole: (n, T, D) -> (n, D K).

    a = softmax(BN(x C)) over K clusters and G ghosts, whose shares are dropped. A set without rows gives 0. Numbers are
    in the order d, k. Parameters: clusters C (D, K + G), clusters2 c (1, D, K), batch_norm; C and c ~ N(0, 1/D).
    Training on fewer than two rows uses the running statistics. Source: Arandjelović et al. 2016; Miech et al. 2017.
    """

    def __init__(self, width: int, clusters: int, ghosts: int = 0) -> None:
        super().__init__()
        self.clusters = nn.Parameter(torch.randn(width, clusters + ghosts) / math.sqrt(width))
        self.clusters2 = nn.Parameter(torch.randn(1, width, clusters) / math.sqrt(width))
        self.batch_norm = _BatchNorm(clusters + ghosts)

    @property
    def width(self) -> int:
        """Number of output coordinates, D K."""
        return self.clusters2.numel()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(n, T, D), mask (n, T) bool of present rows -> (n, D K); without a mask all rows, as in the original."""
        a = self._shares(x, mask)
        v = x.transpose(1, 2).to(a.dtype) @ a - a.sum(1, keepdim=True) * self.clusters2
        return normalize(normalize(v, dim=1).flatten(1), dim=1)

    def _shares(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return (n, T, K): the share of each row that goes to each cluster, 0 for absent rows."""
        clusters = self.clusters2.shape[2]
        if mask is None:
            shares: Tensor = self.batch_norm((x @ self.clusters).flatten(0, 1)).softmax(1)
            return shares[:, :clusters].reshape(*x.shape[:2], clusters)
        rows: Tensor = self.batch_norm(x[mask] @ self.clusters).softmax(1)[:, :clusters]
        a = rows.new_zeros(*mask.shape, clusters)
        a[mask] = rows
        return a


class _BatchNorm(nn.BatchNorm1d):
    """Batch norm that uses the running statistics for fewer than two rows."""

    def forward(self, rows: Tensor) -> Tensor:
        if len(rows) > 1:
            return super().forward(rows)
        return batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
