"""NetVLAD: a set of vectors as what is left of them beside each of a few learnt centres."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, normalize


class NetVLAD(nn.Module):
    """v_dk = Σ_n a_nk (x_nd − c_dk), unit over d for each k, then unit as a whole: (n, T, D) -> (n, D K).

    a = softmax(BN(x C)) over K clusters and G ghosts, which take their share and are dropped. mask: (n, T) bool, the
    rows that are there; None takes all, which is how the original reads padding. A set without rows gives 0. Numbers
    are in the order d, k. Names: clusters C (D, K + G), clusters2 c (1, D, K), batch_norm; C and c ~ N(0, 1/D).
    Training on fewer than two rows uses the running statistics. Source: Arandjelović et al. 2016; Miech et al. 2017.
    """

    def __init__(self, width: int, clusters: int, ghosts: int = 0) -> None:
        super().__init__()
        self.clusters = nn.Parameter(torch.randn(width, clusters + ghosts) / math.sqrt(width))
        self.clusters2 = nn.Parameter(torch.randn(1, width, clusters) / math.sqrt(width))
        self.batch_norm = _Norm(clusters + ghosts)

    @property
    def width(self) -> int:
        """How many numbers come out."""
        return self.clusters2.numel()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        a = self._shares(x, mask)
        v = x.transpose(1, 2).to(a.dtype) @ a - a.sum(1, keepdim=True) * self.clusters2
        return normalize(normalize(v, dim=1).flatten(1), dim=1)

    def _shares(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(n, T, K): how much of each row goes to each cluster, 0 where there is none."""
        kept = self.clusters2.shape[2]
        if mask is None:
            every: Tensor = self.batch_norm((x @ self.clusters).flatten(0, 1)).softmax(1)
            return every[:, :kept].reshape(*x.shape[:2], kept)
        rows: Tensor = self.batch_norm(x[mask] @ self.clusters).softmax(1)[:, :kept]
        a = rows.new_zeros(*mask.shape, kept)
        a[mask] = rows
        return a


class _Norm(nn.BatchNorm1d):
    """Batch norm that takes the running statistics of fewer than two rows."""

    def forward(self, rows: Tensor) -> Tensor:
        if len(rows) > 1:
            return super().forward(rows)
        return batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
