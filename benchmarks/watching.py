"""How much does `watch` add to a training? One call on a batch of 128 pairs, against one step of the small CNN.

Both directions, on the scenes; medians in one process, one thread. The ratio is the cost of a `watch` at each step of a
training; at each hundredth step it costs a hundredth of it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from pytorch_metric_learning import losses  # type: ignore[import-untyped]

from lossscope.live.monitor import LossScope
from lossscope.training.batching import epoch_batches
from lossscope.training.components import resolve
from lossscope.training.recipe import Recipe
from lossscope.training.state import new_state
from lossscope.training.step import Step, train_step
from lossscope.training.task import prepare_task

PAIRS = 128
ITEMS = 32  # of the first calls, in pairs
PROBES = ("cocos", "similarity", "contributors")
WARMUP = 3  # calls that do not count


def training_step(folder: Path) -> Callable[[], object]:
    """Return a function that trains `vsepp:image=cnn-small` for one step, always on the same batch of the scenes."""
    recipe = Recipe(
        data="scenes:train=200,val=10,test=10",
        encoder="vsepp:image=cnn-small",
        objective="ntxent:tau=0.05",
        batch_size=PAIRS,
    )
    task = prepare_task(resolve(recipe), folder, "cpu")
    state = new_state(task)
    state.model.train()
    batch = next(epoch_batches(task.sampling, task.train.relations.caption_image, 0, 0, 0))
    return lambda: train_step(task, state, Step(task.objective_of(1)), batch, folder)


def milliseconds(function: Callable[[], object], n: int) -> float:
    """Return the median milliseconds of n calls, after a warm-up."""
    times = []
    for turn in range(n + WARMUP):
        start = time.perf_counter()
        function()
        if turn >= WARMUP:
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def first_calls(n: int) -> list[float]:
    """Return the milliseconds of n new LossScopes, each with an equal loss of pytorch-metric-learning and one call."""
    x, labels = torch.randn(ITEMS, 64, requires_grad=True), torch.arange(ITEMS) // 2
    times = []
    for _ in range(n):
        start = time.perf_counter()
        LossScope().wrap(losses.NTXentLoss(0.05))(x, labels)
        times.append(1000 * (time.perf_counter() - start))
    return times


def main() -> None:
    """Print the time of each set of probes, and its ratio to that of a step; then that of first calls."""
    torch.set_num_threads(1)
    S = 0.3 * torch.randn(PAIRS, PAIRS, generator=torch.Generator().manual_seed(0)) + 0.5 * torch.eye(PAIRS)
    with tempfile.TemporaryDirectory() as folder:
        step = milliseconds(training_step(Path(folder)), 7)
    print(f"one training step, {PAIRS} pairs, small CNN: {step:.1f} ms")
    for probes in ((PROBES[0],), PROBES[:2], PROBES):
        scope = LossScope("ntxent:tau=0.05", probes)
        watch = milliseconds(lambda scope=scope: scope.watch(S), 300)  # type: ignore[misc]
        print(f"watch with {' + '.join(probes)}: {watch:.2f} ms, {100 * watch / step:.1f} % of the step")
    first, *others = first_calls(8)
    print(f"a new LossScope around NTXentLoss and its first call: {statistics.median(others):.1f} ms")
    print(f"the same where the process has measured no equal loss: {first:.1f} ms")


if __name__ == "__main__":
    main()
