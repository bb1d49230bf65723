"""A training step of the objective alone, S to dL/dS in both directions: ours against the plain autograd loss.

Medians of interleaved repeats in one process, one thread, so that a noisy machine slows both alike; ratios are what
counts. Memory is the peak of what torch allocates, in multiples of S. bare: one matmul of the same size, for scale.
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


def plain_ntxent(S: Tensor, rows: Tensor, own: Tensor) -> Tensor:
    """0.5 (mean cross-entropy of rows + of columns) at S / 0.1."""
    z = S / 0.1
    return (functional.cross_entropy(z, rows) + functional.cross_entropy(z.T, rows)) / 2


def plain_unified(S: Tensor, rows: Tensor, own: Tensor) -> Tensor:
    """Σ (1/60) log(1 + Σ_n exp(60 (s_n − s₊ + 0.2))), as two masked log-sum-exps."""
    positive, zero = S.diag(), S.new_zeros(len(S), 1)
    i2t = (60 * (S - positive[:, None] + 0.2)).masked_fill(own, -torch.inf)
    t2i = (60 * (S - positive[None, :] + 0.2)).masked_fill(own, -torch.inf)
    return (torch.cat([zero, i2t], 1).logsumexp(1).sum() + torch.cat([zero.T, t2i], 0).logsumexp(0).sum()) / 60


def plain_triplet_sh(S: Tensor, rows: Tensor, own: Tensor) -> Tensor:
    """Σ [0.2 − s₊ + max_n s_n]₊, which is what GOAL's con · con is the gradient of."""
    hidden, positive = S.masked_fill(own, -torch.inf), S.diag()
    return (0.2 - positive + hidden.max(1).values).relu().sum() + (0.2 - positive + hidden.max(0).values).relu().sum()


def plain_goal(S: Tensor, rows: Tensor, own: Tensor) -> Tensor:
    """Σ T (P₋ s_n* − P₊ s₊) with T = cir and P = sig held constant: a loss whose gradient GOAL states."""
    hidden, positive = S.masked_fill(own, -torch.inf), S.diag()
    total = S.new_zeros(())
    for dim in (1, 0):
        negative = hidden.max(dim).values
        with torch.no_grad():
            T = (10 * (negative.square() - positive * (2 - positive))).sigmoid()
            pull, push = T * (-2 * (positive - 0.5)).sigmoid(), T * (10 * (negative - 0.5)).sigmoid()
        total = total + (push * negative - pull * positive).sum()
    return total


CASES: tuple[tuple[str, Callable[[Tensor, Tensor, Tensor], Tensor]], ...] = (
    ("ntxent", plain_ntxent),
    ("unified", plain_unified),
    ("goal", plain_triplet_sh),
    ("goal:triplet=cir,pair=sig", plain_goal),
)


def steps(spec: str, plain: Callable[[Tensor, Tensor, Tensor], Tensor], size: int) -> tuple[Callable[[], Tensor], ...]:
    """Ours and plain, each a step from S to its gradient."""
    S = (torch.rand(size, size, generator=torch.Generator().manual_seed(0)) * 0.4).requires_grad_()
    rows, own = torch.arange(size), torch.eye(size, dtype=torch.bool)
    objective = build("objectives", spec)

    def ours() -> Tensor:
        S.grad = None
        weights = both(objective, S.detach(), pair_mask(rows))
        backward(S, reduce_weights(weights, objective.directions, objective.reduction, size).gradient)
        return gradient_of(S)

    def theirs() -> Tensor:
        S.grad = None
        plain(S, rows, own).backward()  # type: ignore[no-untyped-call]
        return gradient_of(S)

    return ours, theirs


def gradient_of(S: Tensor) -> Tensor:
    """What the step left in S."""
    assert S.grad is not None
    return S.grad


def medians(functions: tuple[Callable[[], object], ...], repeats: int) -> list[float]:
    """Seconds of each, measured in turns."""
    taken: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 20):
        for place, function in enumerate(functions):
            begun = time.perf_counter()
            function()
            if turn >= 20:
                taken[place].append(time.perf_counter() - begun)
    return [statistics.median(times) for times in taken]


def peak(function: Callable[[], object], size: int) -> float:
    """Largest sum of live allocations of one call, in multiples of S."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    found: Any = profiler.profiler
    live = most = 0
    for event in sorted(found.kineto_results.events(), key=lambda e: int(e.start_ns())):
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    return most / (4 * size * size)


def main() -> None:
    torch.set_num_threads(1)
    print(
        f"{'objective':<27}{'B':>5}{'ours ms':>9}{'plain ms':>9}{'ratio':>7}{'bare ms':>9}{'ours x S':>9}{'plain':>7}"
    )
    for size in SIZES:
        V = torch.randn(size, 1024)
        for spec, plain in CASES:
            ours, theirs = steps(spec, plain, size)
            torch.testing.assert_close(ours().clone(), theirs().clone(), rtol=1e-3, atol=1e-5)
            mine, other = medians((ours, theirs), REPEATS[size])
            (bare,) = medians((partial(torch.mm, V, V.T),), REPEATS[size])
            print(
                f"{spec:<27}{size:>5}{mine * 1e3:>9.3f}{other * 1e3:>9.3f}{mine / other:>7.2f}{bare * 1e3:>9.3f}"
                f"{peak(ours, size):>9.1f}{peak(theirs, size):>7.1f}"
            )


if __name__ == "__main__":
    main()
