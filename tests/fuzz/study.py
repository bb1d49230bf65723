"""A finished study of two losses and two seeds that several kinds damage."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.tiny import run_study

from .originals import shared


def copy_study(folder: Path) -> None:
    """Copy the study."""
    shutil.copytree(shared("study", run_study) / "study", folder / "study")
