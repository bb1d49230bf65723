"""A run whose model never changes; a log whose gradient is zero."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from lossscope.training import loop
from tests.tiny import RECIPE

from .base import Case, Size, curve, log


def run(size: Size, folder: Path) -> Case:
    path = loop.train(replace(RECIPE, epochs=3, seed=size.seed), folder / "run").path
    for epoch in (2, 3):  # what an optimiser without the model's parameters leaves
        shutil.copy(path / "checkpoints" / "epoch-01.pt", path / "checkpoints" / f"epoch-{epoch:02d}.pt")
    return Case((str(path),))


def gradient(size: Size, folder: Path) -> Case:
    loss = 0.9 * math.log(size.batch) * (1 + 0.02 * size.rng.normal(size=300))
    return Case((), {"log": log(folder, loss=loss, grad_norm=np.zeros(300)), "batch_size": size.batch})


def healthy_run(size: Size, folder: Path) -> Case:
    """A run that learns."""
    recipe = replace(RECIPE, data="scenes:train=200,val=40,test=20,size=16,ambiguity=0", epochs=6, lr=0.004)
    return Case((str(loop.train(replace(recipe, seed=size.seed), folder / "run").path),))


SICK = (gradient,)
SICK_RUNS = (run,)


def healthy(size: Size, folder: Path) -> Case:
    """A gradient that is small and not zero."""
    start = math.log(size.batch)
    path = log(folder, "healthy.csv", loss=curve(size, start, 0.3 * start), grad_norm=np.full(400, 1e-3))
    return Case((), {"log": path, "batch_size": size.batch})
