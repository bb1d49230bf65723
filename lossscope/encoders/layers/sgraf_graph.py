"""From the similarity nodes of a pair to one vector: reasoning over their graph (SGR) or attention filtration (SAF).

Nodes are (n, m, N, d): image, caption, node (the global one first, then one for each word), similarity vector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from .initialisation import init_xavier
from .scan_towers import EPS, unit

RecordStatistics = Callable[[Tensor, Tensor], None]  # means and variances of a chunk of captions, (m,) each


class ReasoningStep(nn.Module):
    """x <- relu(W_g A x + b_g), A = softmax over the rows of (W_q x + b_q)(W_k x + b_k)': one step of SGR.

    The product is computed as (x W_q' W_k + b_q' W_k) x', with one linear map less: the omitted term adds one number to
    a whole row, which the softmax cancels, so that b_k has no influence and a gradient of zero. Names as in released
    files. Source: Diao et al. 2021.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.graph_query_w = init_xavier(nn.Linear(dim, dim))
        self.graph_key_w = init_xavier(nn.Linear(dim, dim))
        self.sim_graph_w = init_xavier(nn.Linear(dim, dim))

    def forward(self, x: Tensor, queries: Tensor, absent: Tensor | None) -> Tensor:
        """Return new vectors of the nodes `queries`, (p, A, d).

        Args:
            x: (p, N, d) all nodes.
            queries: (p, A, d), those among them to compute.
            absent: (p, 1, N) bool, nodes to ignore; None for no node.
        """
        query, key = self.graph_query_w, self.graph_key_w
        bias = query.bias @ key.weight + 0 * key.bias.sum()
        logits = torch.bmm(functional.linear(queries, key.weight.T @ query.weight, bias), x.transpose(1, 2))
        if absent is not None:
            logits = logits.masked_fill(absent, -torch.inf)
        return functional.relu(self.sim_graph_w(torch.bmm(logits.softmax(2), x)))


def reason(steps: nn.ModuleList, nodes: Tensor, mask: Tensor | None) -> Tensor:
    """Return the global node after all steps, (n, m, d); the last step computes no other node.

    Args:
        steps: the ReasoningSteps.
        nodes: (n, m, N, d).
        mask: (m, N) of the nodes that are present; None for all.
    """
    n, m, N, d = nodes.shape
    absent = None if mask is None else ~mask.repeat(n, 1)[:, None]
    x = nodes.reshape(n * m, N, d)
    for index, step in enumerate(steps):
        x = step(x, x[:, :1] if index == len(steps) - 1 else x, absent)
    return x[:, 0].view(n, m, d)


class AttentionFiltration(nn.Module):
    """unit(Σ_k g_k x_k / Σ_k |g_k|), g = sigmoid(BN(w' x_k + b)): SAF. Names as in the released files.

    In training the batch norm uses the mean and variance of each caption by itself, over all images and its nodes, so
    that S_ij depends on the other images of the batch. Source: Diao et al. 2021.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attn_sim_w = init_xavier(nn.Linear(dim, 1))
        self.bn = nn.BatchNorm1d(1)

    def forward(self, nodes: Tensor, mask: Tensor | None, record: RecordStatistics | None = None) -> Tensor:
        """Return (n, m, d), from all images of the batch.

        Args:
            nodes: (n, m, N, d).
            mask: (m, N) of the nodes that are present; None for all.
            record: called in training with the mean and the unbiased variance of each caption.
        """
        if mask is None:
            mask = torch.ones(nodes.shape[1:3], dtype=torch.bool, device=nodes.device)
        x = self.attn_sim_w(nodes).squeeze(3)
        mean, variance = self._moments(x, mask, record)
        z = (x - mean[:, None]) * (variance[:, None] + self.bn.eps).rsqrt() * self.bn.weight + self.bn.bias
        gates = z.sigmoid() * mask
        gates = gates / (gates.sum(2, keepdim=True) + EPS)
        return unit(torch.matmul(gates[:, :, None], nodes).squeeze(2))

    def _moments(self, x: Tensor, mask: Tensor, record: RecordStatistics | None) -> tuple[Tensor, Tensor]:
        """Return mean and variance for each caption, (m,) or (1,): of the batch in training, else the running ones."""
        mean, variance = self.bn.running_mean, self.bn.running_var
        assert mean is not None and variance is not None
        if not self.training:
            return mean, variance
        count = len(x) * mask.sum(1)
        mean = (x * mask).sum((0, 2)) / count
        variance = ((x - mean[:, None]).square() * mask).sum((0, 2)) / count
        if record is not None:
            record(mean.detach(), variance.detach() * count / (count - 1))
        return mean, variance

    def update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running statistics with one caption after the other, in this order: r <- 0.9 r + 0.1 x."""
        kept = 1 - (self.bn.momentum or 0.0)
        powers = kept ** torch.arange(len(mean) - 1, -1, -1, device=mean.device, dtype=mean.dtype)
        for running, values in ((self.bn.running_mean, mean), (self.bn.running_var, variance)):
            assert running is not None
            running.mul_(kept ** len(values)).add_((1 - kept) * (powers * values).sum())
        assert self.bn.num_batches_tracked is not None
        self.bn.num_batches_tracked += len(mean)


class NormStatistics:
    """The statistics of a batch norm, chunk by chunk, in the first scoring only."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Tensor, Tensor]] = []
        self._recording = True

    def record(self, mean: Tensor, variance: Tensor) -> None:
        """Add the statistics of a chunk of captions, (m,) each."""
        if self._recording:
            self._chunks.append((mean, variance))

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing while inside."""
        before, self._recording = self._recording, False
        try:
            yield
        finally:
            self._recording = before

    def reorder(self, order: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances in the order of the batch, from the rows of the captions in scoring order."""
        mean, variance = (torch.cat(parts) for parts in zip(*self._chunks, strict=True))
        inverse = order.argsort().to(mean.device)
        return mean[inverse], variance[inverse]
