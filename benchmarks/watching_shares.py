"""What does `watch` cost beside the loss? As a share of the forward and backward of a contrastive loss alone.

The loss is the cross-entropy of both directions at τ = 0.05 from embeddings of width 512, without any encoder. In a
training the loss is a small part of the step, so `watch` costs that share of a small part. Both default probes run
(`similarity`, `cocos`). Medians of CPU time of one thread, in turns with the loss; memory is the peak above the level
before, S and its gradient included if the loss makes them.

- whole: B pairs in one process, from the loss's S (B, B), and from embeddings, with a new S
- rows: 1 of 8 processes, its S (b, 8 b) in both directions, merged (a group of one process: the message is apart)
- ring: the same rows in 8 blocks that are not kept; its loss is that of the rows, as a ring computes no less
- sample: 500 of the B queries of each direction against all candidates, from embeddings
- towers: in place of the loss a whole step of two transformers of MiniLM's size (6 layers of width 384) on 16 tokens an
  item, forward and backward, and `watch` of its S; CLIP-B/32 has about ten times as many parameters, and more tokens
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measuring import machine, medians, peak, table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from lossscope.core.distributed import process_group
from lossscope.core.exchange import FIRST, exchange
from lossscope.live.monitor import LossScope
from lossscope.objectives.checks.spawn import join_file_group, run_processes

WIDTH, TAU, SPEC = 512, 0.05, "ntxent:tau=0.05"
WHOLE, LOCAL, PROCESSES, SAMPLED = (256, 1024, 4096), (128, 512), 8, (4096, 500)
RANK = 3  # of the process with these rows
Call = Callable[[], object]


def pairs(n: int) -> tuple[Tensor, Tensor]:
    """Return unit vectors of n pairs whose positives rank better than by chance."""
    random = torch.Generator().manual_seed(0)
    first = torch.randn(n, WIDTH, generator=random)
    return normalize(first), normalize(first + 3 * torch.randn(n, WIDTH, generator=random))


def loss(first: Tensor, second: Tensor, rows: slice) -> Call:
    """Return a function that computes the loss of these rows against all columns, and its gradients."""

    def step() -> None:
        a, b = first.clone().requires_grad_(), second.clone().requires_grad_()
        target = torch.arange(len(a))[rows]
        total = cross_entropy(a[rows] @ b.T / TAU, target) + cross_entropy(b[rows] @ a.T / TAU, target)
        torch.autograd.grad(total, [a, b])

    return step


def line(layout: str, size: str, of_loss: Call, watched: Call, repeats: int = 5) -> list[str]:
    """Return a row of the table."""
    loss_seconds, seconds = medians([of_loss, watched], repeats)
    times = f"{1000 * loss_seconds:.1f} ms", f"{1000 * seconds:.1f} ms", f"{100 * seconds / loss_seconds:.1f} %"
    return [layout, size, *times, f"{peak(of_loss):.0f} MB", f"{peak(watched):.0f} MB"]


def of_whole(B: int) -> list[list[str]]:
    """Return the table's rows of whole batches."""
    first, second = pairs(B)
    S, of_loss, scope = first @ second.T, loss(first, second, slice(None)), LossScope(SPEC)
    repeats = 5 if B < 4096 else 3
    return [
        line("whole, S", f"{B}", of_loss, lambda: scope.watch(S), repeats),
        line("whole, embeddings", f"{B}", of_loss, lambda: scope.watch(queries=first, documents=second), repeats),
    ]


def of_rows(b: int) -> list[list[str]]:
    """Return the table's rows of one of several processes, at once and in blocks."""
    B, offset = b * PROCESSES, b * RANK
    first, second = pairs(B)
    rows = slice(offset, offset + b)
    S, S_second, of_loss = first[rows] @ second.T, second[rows] @ first.T, loss(first, second, rows)
    shared = LossScope(SPEC, across_processes=True)

    def ring() -> None:
        with shared.ring(columns=B, offset=offset) as blocks:
            for turn in range(PROCESSES):
                start = (RANK - turn) % PROCESSES * b
                columns = slice(start, start + b)
                blocks.add(S[:, columns], start, S_second[:, columns])

    return [
        line("rows", f"{b} x {B}", of_loss, lambda: shared.watch(S, offset=offset, S_second=S_second)),
        line("ring", f"{b} x {B}", of_loss, ring),
    ]


def of_sample(B: int, queries: int) -> list[list[str]]:
    """Return the table's row of a sample of a batch."""
    first, second = pairs(B)
    scope = LossScope(SPEC, queries=queries)
    sampled = lambda: scope.watch(queries=first, documents=second)  # noqa: E731 - as in the other rows
    return [line("sample", f"{queries} of {B}", loss(first, second, slice(None)), sampled, 3)]


def of_towers(B: int) -> list[list[str]]:
    """Return the table's row of a step with encoders."""
    torch.manual_seed(0)
    towers = [
        nn.TransformerEncoder(nn.TransformerEncoderLayer(384, 12, 1536, dropout=0.0, batch_first=True), 6) for _ in "ab"
    ]
    tokens = torch.randn(2, B, 16, 384)

    def embeddings() -> tuple[Tensor, Tensor]:
        first, second = (normalize(tower(x).mean(1)) for tower, x in zip(towers, tokens, strict=True))
        return first, second

    def step() -> None:
        first, second = embeddings()
        S = first @ second.T / TAU
        total = cross_entropy(S, torch.arange(B)) + cross_entropy(S.T, torch.arange(B))
        torch.autograd.grad(total, [p for tower in towers for p in tower.parameters()])

    with torch.no_grad():
        first, second = embeddings()
    scope, S = LossScope(SPEC), first @ second.T
    return [line("towers", f"{B}", step, lambda: scope.watch(S))]


def message(rank: int, size: int, group: Path) -> float:
    """Return the median milliseconds of a message of each process to all others."""
    with join_file_group(group, rank, size):
        times = []
        for _ in range(300):
            start = time.perf_counter()
            exchange(process_group(), torch.zeros(FIRST - 1, dtype=torch.float64))
            times.append(1000 * (time.perf_counter() - start))
        return statistics.median(times)


def main() -> None:
    """Print the time and memory of each layout, and of the message that merges rows."""
    torch.set_num_threads(1)
    print(machine())
    with tempfile.TemporaryDirectory() as folder, join_file_group(Path(folder) / "group", 0, 1):
        rows = [line for B in WHOLE for line in of_whole(B)]
        rows += [line for b in LOCAL for line in of_rows(b)]
        rows += [*of_sample(*SAMPLED), *of_towers(128)]
    heads = ["layout", "B, or b x B", "loss", "watch", "of the loss", "memory of the loss", "of watch"]
    print(table(heads, rows))
    print(f"\nthe message of {8 * FIRST} bytes between 2 processes, gloo: {run_processes(message, 2):.2f} ms")


if __name__ == "__main__":
    main()
