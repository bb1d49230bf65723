"""A finished study of two losses and two seeds that several kinds damage."""

from __future__ import annotations

import shutil
from pathlib import Path

from lossscope.studies.study import Study
from lossscope.studies.study_file import read_study_file
from lossscope.studies.worker import work
from tests.conftest import STUDY

from .originals import shared


def copy_study(folder: Path) -> None:
    """Copy the study."""
    shutil.copytree(shared("study", _run) / "study", folder / "study")


def _run(folder: Path) -> None:
    (folder / "tiny.toml").write_text(STUDY, encoding="utf-8")
    study = Study.begin(folder / "study", read_study_file(folder / "tiny.toml"))
    for run in study.grid.runs:
        work(study.path, run.key)
