"""From the similarity nodes of a pair to one vector: reasoning over their graph (SGR) or filtering them (SAF).

Nodes are (n, m, N, d): image, caption, node (the global one first, then one for each word), similarity vector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from .initialisation import xavier
from .scan_towers import EPS, unit

Note = Callable[[Tensor, Tensor], None]


class Reasoning(nn.Module):
    """x <- relu(W_g A x + b_g), A = softmax over the rows of (W_q x + b_q)(W_k x + b_k)': one step of SGR.

    The product is taken as (x W_q' W_k + b_q' W_k) x', one map less: what is left out adds one number to a whole row,
    which the softmax takes away, so that b_k has no influence and no gradient but zero. Names as in the original files.
    Source: Diao et al. 2021.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.graph_query_w = xavier(nn.Linear(dim, dim))
        self.graph_key_w = xavier(nn.Linear(dim, dim))
        self.sim_graph_w = xavier(nn.Linear(dim, dim))

    def forward(self, x: Tensor, asking: Tensor, absent: Tensor | None) -> Tensor:
        """New vectors of the nodes `asking` (p, A, d) among x (p, N, d); absent: (p, 1, N) bool of nodes to ignore."""
        query, key = self.graph_query_w, self.graph_key_w
        bias = query.bias @ key.weight + 0 * key.bias.sum()
        logits = torch.bmm(functional.linear(asking, key.weight.T @ query.weight, bias), x.transpose(1, 2))
        if absent is not None:
            logits = logits.masked_fill(absent, -torch.inf)
        return functional.relu(self.sim_graph_w(torch.bmm(logits.softmax(2), x)))


def reasoned(steps: nn.ModuleList, nodes: Tensor, mask: Tensor | None) -> Tensor:
    """The global node after all steps, (n, m, d); mask: (m, N), None for all. The last step computes no other node."""
    n, m, N, d = nodes.shape
    absent = None if mask is None else ~mask.repeat(n, 1)[:, None]
    x = nodes.reshape(n * m, N, d)
    for place, step in enumerate(steps):
        x = step(x, x[:, :1] if place == len(steps) - 1 else x, absent)
    return x[:, 0].view(n, m, d)


class Filtration(nn.Module):
    """unit(Σ_k g_k x_k / Σ_k |g_k|), g = sigmoid(BN(w' x_k + b)): SAF. Names as in the original files.

    In training, the batch norm takes the mean and variance of one caption at a time, over all images and its nodes, so
    that S_ij depends on the other images of the batch. Source: Diao et al. 2021.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attn_sim_w = xavier(nn.Linear(dim, 1))
        self.bn = nn.BatchNorm1d(1)

    def forward(self, nodes: Tensor, mask: Tensor | None, note: Note | None = None) -> Tensor:
        """(n, m, d) from all images of the batch; mask: (m, N), None for all nodes.

        note: is told what the batch norm saw, in training.
        """
        if mask is None:
            mask = torch.ones(nodes.shape[1:3], dtype=torch.bool, device=nodes.device)
        x = self.attn_sim_w(nodes).squeeze(3)
        mean, variance = self._moments(x, mask, note)
        z = (x - mean[:, None]) * (variance[:, None] + self.bn.eps).rsqrt() * self.bn.weight + self.bn.bias
        gates = z.sigmoid() * mask
        gates = gates / (gates.sum(2, keepdim=True) + EPS)
        return unit(torch.matmul(gates[:, :, None], nodes).squeeze(2))

    def _moments(self, x: Tensor, mask: Tensor, note: Note | None) -> tuple[Tensor, Tensor]:
        """Mean and variance for each caption, (m,) or (1,): those of the batch in training, else the running ones."""
        mean, variance = self.bn.running_mean, self.bn.running_var
        assert mean is not None and variance is not None
        if not self.training:
            return mean, variance
        count = len(x) * mask.sum(1)
        mean = (x * mask).sum((0, 2)) / count
        variance = ((x - mean[:, None]).square() * mask).sum((0, 2)) / count
        if note is not None:
            note(mean.detach(), variance.detach() * count / (count - 1))
        return mean, variance

    def remember(self, mean: Tensor, variance: Tensor) -> None:
        """Running statistics after captions seen one after the other, in this order: r <- 0.9 r + 0.1 x for each."""
        kept = 1 - (self.bn.momentum or 0.0)
        powers = kept ** torch.arange(len(mean) - 1, -1, -1, device=mean.device, dtype=mean.dtype)
        for running, seen in ((self.bn.running_mean, mean), (self.bn.running_var, variance)):
            assert running is not None
            running.mul_(kept ** len(seen)).add_((1 - kept) * (powers * seen).sum())
        assert self.bn.num_batches_tracked is not None
        self.bn.num_batches_tracked += len(mean)


class Seen:
    """What the batch norm saw, chunk by chunk, of the first scoring only."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Tensor, Tensor]] = []
        self._open = True

    def note(self, mean: Tensor, variance: Tensor) -> None:
        """Take the statistics of a chunk of captions, (m,) each."""
        if self._open:
            self._chunks.append((mean, variance))

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """While inside, nothing is taken."""
        before, self._open = self._open, False
        try:
            yield
        finally:
            self._open = before

    def in_order(self, order: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of the captions in the order of the batch; order: rows in which they were scored."""
        mean, variance = (torch.cat(parts) for parts in zip(*self._chunks, strict=True))
        back = order.argsort().to(mean.device)
        return mean[back], variance[back]
