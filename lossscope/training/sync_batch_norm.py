"""Normalise over the batch of all processes: running statistics and gradients equal those of a single process.

torch's SyncBatchNorm is for GPUs alone; this works on any device, with shares of any size.
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


class _NormaliseAcrossProcesses(torch.autograd.Function):
    """y = w (x − mean) / √(variance + eps) + b, with mean and variance over the values of all processes.

    dx = w / √(variance + eps) · (dy − Σ dy / n − x̂ Σ dy x̂ / n), x̂ the normalised x, both sums over all processes. The
    gradients of w and b are those of this process; `sum_gradients` adds them up with those of other parameters.
    Source: Ioffe & Szegedy 2015.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, moments: tuple[Tensor, Tensor, float], of: SyncForward
    ) -> Tensor:
        mean, variance, ctx.count = moments
        eps = of.norm.eps
        ctx.save_for_backward(x, weight, mean, (variance + eps).rsqrt())
        ctx.processes, ctx.counted = of.processes, of.counted
        return batch_norm(x, mean, variance, weight, bias, eps=eps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight, mean, scale = ctx.saved_tensors
        dy = gradients[0].to(mean.dtype)
        normal = (x - _wide(mean, x)) * _wide(scale, x)
        axes = _axes(x)
        db, dw = dy.sum(axes), (dy * normal).sum(axes)
        if ctx.counted:
            first, second = ctx.processes.sum(torch.stack([db, dw])) / ctx.count
            dy = dy - _wide(first, x) - normal * _wide(second, x)
        else:
            ctx.processes.sum(torch.stack([db, dw]))
        return (dy * _wide(weight * scale, x)).to(x.dtype), dw, db, None, None


class SyncForward:
    """Replaces the forward of a batch norm."""

    def __init__(self, norm: _BatchNorm, processes: ProcessGroup) -> None:
        self.norm, self.processes = norm, processes
        self.counted = True  # whether the items of a call belong to the batch

    def __call__(self, x: Tensor) -> Tensor:
        norm = self.norm
        if not norm.training:
            return type(norm).forward(norm, x)
        mean, variance, count = self._moments(x.detach())
        if count < 2:  # a variance needs two values
            return batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        self._update_running(mean, variance * count / (count - 1))
        weight = torch.ones_like(mean) if norm.weight is None else norm.weight
        bias = torch.zeros_like(mean) if norm.bias is None else norm.bias
        y: Tensor = _NormaliseAcrossProcesses.apply(x, weight, bias, (mean, variance, count), self)  # type: ignore[no-untyped-call]
        return y

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, float]:
        """Return mean and variance of each channel over all processes (Chan et al. 1979), and the number of values."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        count = x.numel() // x.shape[1] if self.counted else 0
        moments = wide.new_zeros(2, x.shape[1])
        if count:
            moments[1], moments[0] = torch.var_mean(wide, _axes(x), correction=0)
        table = self.processes.stack(
            torch.cat([moments.flatten().double(), moments.new_tensor([count], dtype=torch.float64)])
        )
        counts, means, variances = table[:, -1:], *table[:, :-1].chunk(2, 1)
        total = float(counts.sum())
        mean = (counts * means).sum(0) / max(total, 1)
        variance = (counts * (variances + (means - mean).square())).sum(0) / max(total, 1)
        return mean.to(wide.dtype), variance.to(wide.dtype), total

    @torch.no_grad()
    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running statistics as torch does."""
        norm = self.norm
        if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
            return
        norm.num_batches_tracked.add_(1)
        rate = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
        for running, value in ((norm.running_mean, mean), (norm.running_var, variance)):
            running.mul_(1 - rate).add_(value.to(running.dtype), alpha=rate)


def sync_batch_norms(model: nn.Module, processes: ProcessGroup) -> None:
    """Make the batch norms of a model normalise over the batch of all processes; a single process changes nothing."""
    for norm in model.modules() if processes.size > 1 else ():
        if isinstance(norm, _BatchNorm):
            norm.__dict__["forward"] = SyncForward(norm, processes)


@contextlib.contextmanager
def uncounted_batches(model: nn.Module) -> Iterator[None]:
    """Leave items inside out of the statistics of batch norms: they are normalised, but do not count."""
    norms = [norm for module in model.modules() if isinstance(norm := module.__dict__.get("forward"), SyncForward)]
    for norm in norms:
        norm.counted = False
    try:
        yield
    finally:
        for norm in norms:
            norm.counted = True


def _axes(x: Tensor) -> list[int]:
    """Return the axes other than the channels."""
    return [axis for axis in range(x.ndim) if axis != 1]


def _wide(column: Tensor, x: Tensor) -> Tensor:
    """Return (C,) in a shape that broadcasts over x."""
    return column.view(1, -1, *[1] * (x.ndim - 2))
