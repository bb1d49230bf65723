"""Resume a run that stopped after its first epoch to a second."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.monitor import ProbeSchedule
from tests.tiny import RECIPE

from .originals import shared
from .results import tables_of

_SHORT = replace(RECIPE, data="scenes:train=24,val=8,test=8,size=16", epochs=1, batch_size=8)


def copy_stopped(folder: Path) -> None:
    """Copy a run that has one epoch of two, with probes."""
    shutil.copytree(shared("stopped", _train) / "run", folder / "run")


def resume_and_read(folder: Path) -> object:
    """Resume the run and return its tables and weights."""
    run = resume(folder / "run", epochs=2)
    probes = run.probes.read_text(encoding="utf-8")
    return tables_of(run), probes, Checkpoint.load(Run(run.path).best).weights, Checkpoint.load(run.last).optimiser


def _train(folder: Path) -> None:
    train(_SHORT, folder / "run", probe_schedule=ProbeSchedule(("similarity", "cocos"), 1))
