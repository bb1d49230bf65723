"""One `watch` of a batch of 128 pairs, both directions, against one training step of the small CNN on the scenes.

Medians in one process, one thread. The ratio is what a training pays that looks at every step; every hundredth costs a
hundredth of it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from lossscope.live.monitor import LossScope
from lossscope.training.batching import epoch_batches
from lossscope.training.components import resolve
from lossscope.training.recipe import Recipe
from lossscope.training.state import new_state
from lossscope.training.step import train_step
from lossscope.training.task import prepare_task

PAIRS = 128
PROBES = ("cocos", "similarity", "contributors")


def training_step(folder: Path) -> Callable[[], object]:
    """One step of `vsepp:image=cnn-small` on the embedded scenes, always the same batch."""
    recipe = Recipe(
        data="scenes:train=200,val=10,test=10",
        encoder="vsepp:image=cnn-small",
        objective="ntxent:tau=0.05",
        batch_size=PAIRS,
    )
    task = prepare_task(resolve(recipe), folder, "cpu")
    state = new_state(task)
    state.model.train()
    batch = next(epoch_batches(task.sampling, task.train.caption_image, 0, 0, 0))
    return lambda: train_step(task, state, task.objective_of(1), batch, folder)


def milliseconds(function: Callable[[], object], repeats: int) -> float:
    """The median of so many calls, after a few that are not counted."""
    taken = []
    for turn in range(repeats + 3):
        begun = time.perf_counter()
        function()
        if turn >= 3:
            taken.append(1000 * (time.perf_counter() - begun))
    return statistics.median(taken)


def main() -> None:
    """Print what each set of probes costs, and its part of a step."""
    torch.set_num_threads(1)
    S = 0.3 * torch.randn(PAIRS, PAIRS, generator=torch.Generator().manual_seed(0)) + 0.5 * torch.eye(PAIRS)
    with tempfile.TemporaryDirectory() as folder:
        step = milliseconds(training_step(Path(folder)), 7)
    print(f"one training step, {PAIRS} pairs, small CNN: {step:.1f} ms")
    for probes in ((PROBES[0],), PROBES[:2], PROBES):
        scope = LossScope("ntxent:tau=0.05", probes)
        once = milliseconds(lambda scope=scope: scope.watch(S), 300)  # type: ignore[misc]
        print(f"watch with {' + '.join(probes)}: {once:.2f} ms, {100 * once / step:.1f} % of the step")


if __name__ == "__main__":
    main()
