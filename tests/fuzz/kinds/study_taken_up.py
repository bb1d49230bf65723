"""A study's files, as `lossscope study run` resumes it and trains the missing run."""

from __future__ import annotations

from pathlib import Path

from lossscope.studies.study import Study
from lossscope.studies.worker import work
from tests.fuzz.study import copy_study

FILES = {"study/study.json": "json", "study/runs/scenes*/run.json": "json"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a finished study, and remove the status of a run."""
    copy_study(folder)
    min((folder / "study" / "runs").glob("*/status.json")).unlink()


def read(folder: Path) -> object:
    """Resume it, and train the missing run."""
    study = Study.open(folder / "study")
    study = Study.begin(study.path, study.grid)
    left = [entry.run for entry in study.statuses() if entry.status != "done"]
    for run in left:
        work(study.path, run.key)
    return [(entry.run, entry.status, entry.rsum) for entry in study.statuses()]
