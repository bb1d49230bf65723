"""A model that never updated its running statistics."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training import loop
from tests.tiny import RECIPE

from .base import Case, Size

_DATA = "scenes:train=200,val=40,test=20,size=16,ambiguity=0"
_RECIPE = replace(
    RECIPE, data=_DATA, encoder="vsepp:dim=32,words=16,width=8", epochs=25, batch_size=50, lr=0.006, min_count=1
)


@cache
def _run(seed: int) -> Path:
    """Train once in a process: the healthy and the sick model are the same run."""
    home = Path(tempfile.mkdtemp(prefix="lossscope-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return loop.train(replace(_RECIPE, seed=seed), home / "run").path


def _trained(size: Size, folder: Path) -> Path:
    return Path(shutil.copytree(_run(size.seed), folder / "run")) / "best.pt"


def running_statistics(size: Size, folder: Path) -> Case:
    """Mean 0 and variance 1, as at the start: training mode does not use them."""
    checkpoint = Checkpoint.load(_trained(size, folder))
    start = {"running_mean": torch.zeros_like, "running_var": torch.ones_like}
    weights = {name: start.get(name.rpartition(".")[2], torch.clone)(x) for name, x in checkpoint.weights.items()}
    replace(checkpoint, weights=weights).save(folder / "sick.pt")
    return Case((str(folder / "sick.pt"),))


SICK = ()
SICK_RUNS = (running_statistics,)


def healthy_run(size: Size, folder: Path) -> Case:
    """The same model as it was trained."""
    return Case((str(_trained(size, folder)),))
