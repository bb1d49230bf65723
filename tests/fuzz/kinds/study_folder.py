"""A study's study.json, run.json and status.json, as `lossscope study status` and the workers read them."""

from __future__ import annotations

from pathlib import Path

from lossscope.studies.study import Study, read_run
from tests.fuzz.study import copy_study

FILES = {
    "study/study.json": "json",
    "study/runs/*/run.json": "json",
    "study/runs/*/status.json": "json",
    "study": "folder",
}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Copy a finished study."""
    copy_study(folder)


def read(folder: Path) -> object:
    """Read every status and every run."""
    study = Study.open(folder / "study")
    return study.statuses(), [read_run(study.folder(run)) for run in study.grid.runs]
