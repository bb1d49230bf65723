"""A study as a TOML file, as `lossscope study run` reads it."""

from __future__ import annotations

from pathlib import Path

from lossscope.studies.study_file import read_study_file
from tests.tiny import STUDY

FILES = {"study.toml": "toml"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a study of two losses and two seeds."""
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")


def read(folder: Path) -> object:
    """Read its grid."""
    return read_study_file(folder / "study.toml")
