"""Batch norm over the batch of all processes: statistics, running ones too, and gradients are those of one process.

torch's SyncBatchNorm is for GPUs alone; this is for any device, with shares of any sizes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from lossscope.core.distributed import ProcessGroup


class _Normalised(torch.autograd.Function):
    """y = w (x − mean) / √(variance + eps) + b, where mean and variance are of all processes' values.

    dx = w / √(variance + eps) · (dy − Σ dy / n − x̂ Σ dy x̂ / n), x̂ the normalised x, both sums over all processes; the
    gradients of w and b are one's own, to be added up with those of other parameters. Source: Ioffe & Szegedy 2015.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, moments: tuple[Tensor, Tensor, float], of: SyncForward
    ) -> Tensor:
        mean, variance, ctx.count = moments
        eps = of.norm.eps
        ctx.save_for_backward(x, weight, mean, (variance + eps).rsqrt())
        ctx.processes, ctx.counted_weights = of.processes, of.counted_weights
        return batch_norm(x, mean, variance, weight, bias, eps=eps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight, mean, scale = ctx.saved_tensors
        dy = gradients[0].to(mean.dtype)
        normal = (x - _wide(mean, x)) * _wide(scale, x)
        axes = _axes(x)
        db, dw = dy.sum(axes), (dy * normal).sum(axes)
        if ctx.counted_weights:
            first, second = ctx.processes.sum(torch.stack([db, dw])) / ctx.count
            dy = dy - _wide(first, x) - normal * _wide(second, x)
        else:
            ctx.processes.sum(torch.stack([db, dw]))
        return (dy * _wide(weight * scale, x)).to(x.dtype), dw, db, None, None


class SyncForward:
    """What stands in for the forward of a batch norm. counted: whether what it is given is of the batch."""

    def __init__(self, norm: _BatchNorm, processes: ProcessGroup) -> None:
        self.norm, self.processes, self.counted_weights = norm, processes, True

    def __call__(self, x: Tensor) -> Tensor:
        norm = self.norm
        if not norm.training:
            return type(norm).forward(norm, x)
        mean, variance, count = self._moments(x.detach())
        if count < 2:  # nothing to take a variance of
            return batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        self._remember(mean, variance * count / (count - 1))
        weight = torch.ones_like(mean) if norm.weight is None else norm.weight
        bias = torch.zeros_like(mean) if norm.bias is None else norm.bias
        found: Tensor = _Normalised.apply(x, weight, bias, (mean, variance, count), self)  # type: ignore[no-untyped-call]
        return found

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, float]:
        """Mean and variance of each channel over all processes (Chan et al. 1979), and how many values they are of."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        count = x.numel() // x.shape[1] if self.counted_weights else 0
        own = wide.new_zeros(2, x.shape[1])
        if count:
            own[1], own[0] = torch.var_mean(wide, _axes(x), correction=0)
        table = self.processes.stack(torch.cat([own.flatten().double(), own.new_tensor([count], dtype=torch.float64)]))
        counts, means, variances = table[:, -1:], *table[:, :-1].chunk(2, 1)
        total = float(counts.sum())
        mean = (counts * means).sum(0) / max(total, 1)
        variance = (counts * (variances + (means - mean).square())).sum(0) / max(total, 1)
        return mean.to(wide.dtype), variance.to(wide.dtype), total

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """The running statistics, as torch keeps them."""
        norm = self.norm
        if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
            return
        norm.num_batches_tracked.add_(1)
        rate = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
        for running, seen in ((norm.running_mean, mean), (norm.running_var, variance)):
            running.mul_(1 - rate).add_(seen.to(running.dtype), alpha=rate)


def sync_batch_norms(model: nn.Module, processes: ProcessGroup) -> None:
    """Let the batch norms of a model see the batch of all processes; alone they stay as they are."""
    for norm in model.modules() if processes.size > 1 else ():
        if isinstance(norm, _BatchNorm):
            norm.__dict__["forward"] = SyncForward(norm, processes)


@contextlib.contextmanager
def uncounted_batches(model: nn.Module) -> Iterator[None]:
    """While inside, what the batch norms are given is no part of the batch: it is normalised, and not seen."""
    found = [norm for module in model.modules() if isinstance(norm := module.__dict__.get("forward"), SyncForward)]
    for norm in found:
        norm.counted_weights = False
    try:
        yield
    finally:
        for norm in found:
            norm.counted_weights = True


def _axes(x: Tensor) -> list[int]:
    """All but the channels."""
    return [axis for axis in range(x.ndim) if axis != 1]


def _wide(column: Tensor, x: Tensor) -> Tensor:
    """(C,) in the shape in which it meets x."""
    return column.view(1, -1, *[1] * (x.ndim - 2))
