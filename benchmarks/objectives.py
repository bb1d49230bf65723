"""How long does a training step of the objective alone take, from S to dL/dS, against the plain autograd loss?

Both directions. Medians of interleaved repeats in one process, one thread, so that a noisy machine slows both alike:
compare ratios, not times. Memory is the peak of torch's allocations, in multiples of S. bare: a matrix product of the
same size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from lossscope.core.similarity import pair_mask
from lossscope.core.weights import backward, both, reduce_weights
from lossscope.registry import build

SIZES, REPEATS = (128, 1024), {128: 1500, 1024: 60}
WARMUP = 20  # turns that do not count


def plain_ntxent(S: Tensor, rows: Tensor, diagonal: Tensor) -> Tensor:
    """0.5 (mean cross-entropy of rows + of columns) at S / 0.1."""
    z = S / 0.1
    return (functional.cross_entropy(z, rows) + functional.cross_entropy(z.T, rows)) / 2


def plain_unified(S: Tensor, rows: Tensor, diagonal: Tensor) -> Tensor:
    """Σ (1/60) log(1 + Σ_n exp(60 (s_n − s₊ + 0.2))), as two masked log-sum-exps."""
    positive, zero = S.diag(), S.new_zeros(len(S), 1)
    i2t = (60 * (S - positive[:, None] + 0.2)).masked_fill(diagonal, -torch.inf)
    t2i = (60 * (S - positive[None, :] + 0.2)).masked_fill(diagonal, -torch.inf)
    return (torch.cat([zero, i2t], 1).logsumexp(1).sum() + torch.cat([zero.T, t2i], 0).logsumexp(0).sum()) / 60


def plain_triplet_sh(S: Tensor, rows: Tensor, diagonal: Tensor) -> Tensor:
    """Σ [0.2 − s₊ + max_n s_n]₊, whose gradient is that of GOAL with con · con."""
    negatives, positive = S.masked_fill(diagonal, -torch.inf), S.diag()
    i2t, t2i = (0.2 - positive + negatives.max(dim).values for dim in (1, 0))
    return i2t.relu().sum() + t2i.relu().sum()


def plain_goal(S: Tensor, rows: Tensor, diagonal: Tensor) -> Tensor:
    """Σ T (P₋ s_n* − P₊ s₊) with T = cir and P = sig held constant: a loss whose gradient GOAL states."""
    negatives, positive = S.masked_fill(diagonal, -torch.inf), S.diag()
    total = S.new_zeros(())
    for dim in (1, 0):
        hardest = negatives.max(dim).values
        with torch.no_grad():
            T = (10 * (hardest.square() - positive * (2 - positive))).sigmoid()
            pull, push = T * (-2 * (positive - 0.5)).sigmoid(), T * (10 * (hardest - 0.5)).sigmoid()
        total = total + (push * hardest - pull * positive).sum()
    return total


CASES: tuple[tuple[str, Callable[[Tensor, Tensor, Tensor], Tensor]], ...] = (
    ("ntxent", plain_ntxent),
    ("unified", plain_unified),
    ("goal", plain_triplet_sh),
    ("goal:triplet=cir,pair=sig", plain_goal),
)


def steps(spec: str, plain: Callable[[Tensor, Tensor, Tensor], Tensor], size: int) -> tuple[Callable[[], Tensor], ...]:
    """Return two functions from S to dL/dS: ours and plain autograd."""
    S = (torch.rand(size, size, generator=torch.Generator().manual_seed(0)) * 0.4).requires_grad_()
    rows, diagonal = torch.arange(size), torch.eye(size, dtype=torch.bool)
    objective = build("objectives", spec)

    def ours() -> Tensor:
        S.grad = None
        weights = both(objective, S.detach(), pair_mask(rows))
        backward(S, reduce_weights(weights, objective.traits.directions, objective.traits.reduction, size).gradient)
        return read_gradient(S)

    def autograd() -> Tensor:
        S.grad = None
        plain(S, rows, diagonal).backward()  # type: ignore[no-untyped-call]
        return read_gradient(S)

    return ours, autograd


def read_gradient(S: Tensor) -> Tensor:
    """Return dL/dS, which a step wrote to S."""
    assert S.grad is not None
    return S.grad


def medians(functions: tuple[Callable[[], object], ...], repeats: int) -> list[float]:
    """Return the median seconds of each function, called in turns."""
    seconds: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + WARMUP):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            if turn >= WARMUP:
                seconds[index].append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def peak(function: Callable[[], object], size: int) -> float:
    """Return the largest sum of live allocations in a call, in multiples of S."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    trace: Any = profiler.profiler
    live = largest = 0
    for event in sorted(trace.kineto_results.events(), key=lambda e: int(e.start_ns())):
        if event.name() == "[memory]":
            live += event.nbytes()
            largest = max(largest, live)
    return largest / (4 * size * size)


def main() -> None:
    torch.set_num_threads(1)
    print(
        f"{'objective':<27}{'B':>5}{'ours ms':>9}{'plain ms':>9}{'ratio':>7}{'bare ms':>9}{'ours x S':>9}{'plain':>7}"
    )
    for size in SIZES:
        V = torch.randn(size, 1024)
        for spec, plain in CASES:
            ours, autograd = steps(spec, plain, size)
            torch.testing.assert_close(ours().clone(), autograd().clone(), rtol=1e-3, atol=1e-5)
            seconds, plain_seconds = medians((ours, autograd), REPEATS[size])
            (bare,) = medians((partial(torch.mm, V, V.T),), REPEATS[size])
            print(
                f"{spec:<27}{size:>5}{seconds * 1e3:>9.3f}{plain_seconds * 1e3:>9.3f}{seconds / plain_seconds:>7.2f}"
                f"{bare * 1e3:>9.3f}{peak(ours, size):>9.1f}{peak(autograd, size):>7.1f}"
            )


if __name__ == "__main__":
    main()
