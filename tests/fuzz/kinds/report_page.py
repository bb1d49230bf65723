"""Everything a report reads of a study, and the report itself."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lossscope.studies.report import report
from lossscope.studies.report_options import ReportOptions
from tests.blank_pictures import blank_pictures
from tests.fuzz.study import copy_study

FILES = {
    "study/runs/*/run/evaluation/*.parquet": "parquet", "study/runs/*/run/evaluation/manifest.json": "json",
    "study/study.json": "json", "study/runs/*/run/metrics.csv": "csv",
}  # fmt: skip
CHECKSUMMED = ("study/runs/*/run/evaluation/*.parquet", "study/runs/*/run/evaluation/manifest.json")
SHARE = 0.05  # of the cases of other kinds: each takes seconds


def make(folder: Path) -> None:
    """Copy a finished study."""
    copy_study(folder)


def read(folder: Path) -> object:
    """Write the report and return its numbers."""
    with blank_pictures("pdf"):
        report([folder / "study"], folder / "report", ReportOptions(resamples=99))
    return {file.name: pd.read_parquet(file) for file in sorted((folder / "report" / "numbers").glob("*.parquet"))}
