"""Are torch's DistributedDataParallel, SyncBatchNorm and all_gather enough for training on 1, 2 and 3 processes?

gloo on the CPU. ours: each process sends W / N back and gradients are added up (`training/data_parallel.py`). DDP:
DistributedDataParallel, which averages, so each process sends all of W back; unused: with find_unused_parameters; sum:
with a hook that adds up, too. All of them gather embeddings and take batch norms as ours does.

gradients: float64; the largest difference to the gradient of one process, relative to its largest number; error: the
job ends. bits: parameters that differ after 4 steps of Adam if the job restarts after 2. step: wall / cpu, relative to
ours; cpu is of all processes and of gloo's threads; float32, one thread a process, variants in turns, medians. gather:
forward and backward, with equal rows in each process, or one less in the first; MB: sent by a process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from measuring import machine, table
from shared_step import UNUSED, VARIANTS, Pairs, SharedStep, encoder, joined
from torch import Tensor, nn
from torch.distributed import _functional_collectives
from torch.distributed.nn.functional import all_gather

from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.objectives.checks.spawn import ProcessError, run_processes
from lossscope.registry import build
from lossscope.training.learnt_scale import LearntScale

CNN = "vsepp:dim=16,words=8,width=4"  # with batch norms
EQUAL = ("even", "uneven", "empty", "accumulated", "learnt scale", "outer step")
Gradients = dict[str, Tensor | None]


def gradients_of(case: str, variant: str, here: ProcessGroup) -> Gradients:
    """Return the gradients of the parameters after a case."""
    shared = SharedStep(encoder(case if case in UNUSED else CNN), variant, here)
    if case in UNUSED:
        for _ in range(2):  # DDP notices a missing parameter at the next step
            shared.step(Pairs.random(12))
        return shared.gradients
    pairs = Pairs.random({"uneven": 11, "empty": 2}.get(case, 12))
    if case == "outer step":  # torch.autograd.grad leaves nothing in parameters, and calls no hooks of DDP
        S = shared.forward(pairs)
        parameters = dict(shared.model.named_parameters())
        found = torch.autograd.grad(S, list(parameters.values()), torch.ones_like(S) * shared.scale, allow_unused=True)
        for p, g in zip(parameters.values(), found, strict=True):
            p.grad = g
        shared.reduce()
        return shared.gradients
    S = shared.send_back(pairs)
    if case == "learnt scale":
        objective = build("objectives", "infonce")
        learnt = LearntScale(objective)
        learnt.set_gradients(S, torch.ones_like(S) * shared.scale, objective)
        shared.reduce(learnt.log_scale)
        return {"log_scale": learnt.log_scale.grad}
    if case == "accumulated":
        shared.send_back(Pairs.random(12, seed=1))
    shared.reduce()
    return shared.gradients


def far(mine: Gradients, expected: Gradients) -> float:
    """Return the largest difference over the largest number; inf if only one side has some gradient."""
    if [g is None for g in mine.values()] != [g is None for g in expected.values()]:
        return float("inf")
    left, right = (torch.cat([g.flatten() for g in gs.values() if g is not None]) for gs in (mine, expected))
    return float((left - right).abs().max() / right.abs().max())


def changed_bits(variant: str, here: ProcessGroup) -> int:
    """Return how many parameters a restart after 2 of 4 steps changes."""

    def train(shared: SharedStep, optimiser: torch.optim.Optimizer, seeds: range) -> None:
        for seed in seeds:
            shared.step(Pairs.random(11, seed))
            optimiser.step()

    def adam(shared: SharedStep) -> torch.optim.Optimizer:
        return torch.optim.Adam(shared.model.parameters(), 1e-3)

    whole = SharedStep(encoder(CNN), variant, here)
    train(whole, adam(whole), range(4))
    first = SharedStep(encoder(CNN), variant, here)
    optimiser = adam(first)
    train(first, optimiser, range(2))
    second = SharedStep(first.model, variant, here)
    resumed = adam(second)
    resumed.load_state_dict(optimiser.state_dict())
    train(second, resumed, range(2, 4))
    pairs = zip(whole.model.parameters(), second.model.parameters(), strict=True)
    return sum(int((p != q).sum()) for p, q in pairs)


def differences(rank: int, size: int, file: Path, cases: Sequence[str], variant: str) -> list[float]:
    """Return for each case the largest difference of gradients to those of one process; `bits` for the resume."""
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]  # the towers' own casts
    with joined(file, rank, size) as here:
        numbers = [_difference(case, variant, here) for case in cases]
        return [float(here.max(torch.tensor(number, dtype=torch.float64))) for number in numbers]


def _difference(case: str, variant: str, here: ProcessGroup) -> float:
    if case == "bits":
        return float(changed_bits(variant, here))
    return far(gradients_of(case, variant, here), gradients_of(case, "ours", ProcessGroup()))


def in_processes(function: Callable[..., Any], size: int, *arguments: Any) -> Any:
    """Return the result of rank 0, or the error in a word."""
    try:
        return run_processes(function, size, *arguments)
    except ProcessError as error:
        print(error, file=sys.stderr)
        return "error"


def gradient_rows(sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Return a row for each number of processes and case."""
    rows = []
    for size in sizes:
        numbers: dict[str, list[str]] = {case: [] for case in (*EQUAL, *UNUSED, "bits")}
        for variant in VARIANTS:
            equal = (*EQUAL, "bits")  # a case that ends the job runs alone
            for cases in (equal, *((case,) for case in UNUSED)) if variant == "DDP" else ((*equal, *UNUSED),):
                found = in_processes(differences, size, cases, variant)
                for position, case in enumerate(cases):
                    text = found if isinstance(found, str) else f"{found[position]:.0e}".replace("e-", "e−")
                    numbers[case].append(f"{found[position]:.0f}" if case == "bits" and text != found else text)
        rows += [(case, str(size), *texts) for case, texts in numbers.items()]
        print(f"gradients of {size} processes", file=sys.stderr, flush=True)
    return rows


def step_times(rank: int, size: int, file: Path, spec: str, pairs: int, repeats: int) -> list[tuple[float, float]]:
    """Return for each variant the milliseconds of a step, and of the processors of all processes."""
    with joined(file, rank, size) as here:  # the group must outlive DDP, which may otherwise not end
        batch = Pairs.random(pairs)
        return timed([partial(SharedStep(encoder(spec), v, here).step, batch) for v in VARIANTS], here, repeats)


def timed(functions: Sequence[Callable[[], object]], here: ProcessGroup, repeats: int) -> list[tuple[float, float]]:
    """Return the median milliseconds of each, in turns: of the slowest process, and the sum over all processors."""
    taken: list[list[tuple[float, float]]] = [[] for _ in functions]
    for turn in range(repeats + 2):
        for function, times in zip(functions, taken, strict=True):
            here.barrier()
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            spent = torch.tensor([time.perf_counter() - wall, time.process_time() - cpu], dtype=torch.float64)
            if turn >= 2:
                times.append((1000 * float(here.max(spent)[0]), 1000 * float(here.sum(spent)[1])))
    return [(statistics.median(w for w, _ in times), statistics.median(c for _, c in times)) for times in taken]


def ours(x: Tensor) -> Tensor:
    return process_group().gather_rows(x)


def functional(x: Tensor) -> Tensor:
    return torch.cat(all_gather(x))  # type: ignore[no-untyped-call]


def collective(x: Tensor) -> Tensor:
    rows: Tensor = _functional_collectives.all_gather_tensor_autograd(x, 0, dist.group.WORLD)  # type: ignore[arg-type]
    return rows * 1  # waits for them


GATHERS = (ours, functional, collective)


def gathered(gather: Callable[[Tensor], Tensor], counts: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """Return the rows of all processes, and the gradient of this process's rows."""
    generator = torch.Generator().manual_seed(process_group().rank)
    x = torch.randn(counts[process_group().rank], width, generator=generator).requires_grad_()
    rows = gather(x)
    torch.autograd.backward(rows, torch.randn(sum(counts), width, generator=generator))
    assert x.grad is not None
    return rows.detach(), x.grad


def gather_numbers(
    rank: int, size: int, file: Path, index: int, counts: list[int], width: int, repeats: int
) -> tuple[float, ...]:
    """Return differences of rows and gradients to ours, MB sent by a process, and ms of all gathers in turns."""
    warnings.simplefilter("ignore", FutureWarning)
    calls = [partial(gathered, gather, counts, width) for gather in (ours, GATHERS[index])]
    with joined(file, rank, size) as here:
        expected, mine = (call() for call in calls)
        apart = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(mine, expected, strict=True)]
        before = _written()
        calls[1]()
        sent = _written() - before
        times = timed(calls, here, repeats)
    return (*apart, sent / 1e6, times[0][0], times[1][0])


def _written() -> int:
    """Return the bytes that this process has written, to sockets too."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def gather_rows(sizes: Sequence[int], rows: int, width: int, repeats: int) -> list[tuple[str, ...]]:
    """Return a row for each way to gather, number of processes, and kind of shares."""
    table_rows: list[tuple[str, ...]] = []
    for size in sizes:
        for shares, counts in (("even", [rows] * size), ("uneven", [rows - 1] + [rows] * (size - 1))):
            for index, gather in enumerate(GATHERS):
                found = in_processes(gather_numbers, size, index, counts, width, repeats)
                names = (f"{gather.__name__}", str(size), shares)
                if isinstance(found, str):
                    table_rows.append((*names, found, "", "", ""))
                else:
                    table_rows.append(
                        (*names, *(f"{x:.0e}" for x in found[:2]), f"{found[2]:.1f}", f"{found[4] / found[3]:.2f}")
                    )
    return table_rows


def batch_norm_answer(rank: int, size: int, file: Path) -> str:
    """Return the answer of SyncBatchNorm to a batch on the CPU."""
    with joined(file, rank, size):
        try:
            nn.SyncBatchNorm(4)(torch.randn(3, 4))
        except ValueError as error:
            return f"ValueError: {error}"
    return "runs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3], help="numbers of processes")
    parser.add_argument("--encoders", nargs="+", default=["vsepp:image=cnn-small", "clip:width=256,depth=4,patch=4"])
    parser.add_argument("--pairs", type=int, default=96)
    parser.add_argument("--rows", type=int, default=512, help="that a process has to gather")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    print(f"medians of {options.repeats}, gloo, {machine()}\n")
    print(table(("gradients", "processes", *VARIANTS), gradient_rows(options.sizes)))
    rows: list[tuple[str, ...]] = []
    for spec in options.encoders:
        parameters = sum(p.numel() for p in encoder(spec).parameters()) / 1e6
        for size in options.sizes:
            times = run_processes(step_times, size, spec, options.pairs, options.repeats)
            ratios = [f"{wall / times[0][0]:.2f} / {cpu / times[0][1]:.2f}" for wall, cpu in times[1:]]
            rows.append((spec, f"{parameters:.1f}", str(size), *(f"{x:.1f}" for x in times[0]), *ratios))
            print(f"times of {spec}, {size} processes", file=sys.stderr, flush=True)
    heads = ("step", "M parameters", "processes", "ours ms", "cpu ms", *VARIANTS[1:])
    print(f"\n{table(heads, rows)}\n")
    several = [size for size in options.sizes if size > 1]
    rows = gather_rows(several, options.rows, options.width, options.repeats)
    print(table(("gather", "processes", "shares", "rows differ", "gradients", "MB", "ms to ours"), rows))
    print(f"\nSyncBatchNorm on the CPU: {run_processes(batch_norm_answer, 1)}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
