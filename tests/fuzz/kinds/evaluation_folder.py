"""The evaluation of a run: manifest, parquet files and the doctor's findings, as reports read them."""

from __future__ import annotations

from pathlib import Path

from lossscope.io.evaluation_folder import evaluation_state
from lossscope.studies.report import read_runs
from tests.fuzz.study import copy_study

FILES = {
    "study/runs/*/run/evaluation/manifest.json": "json",
    "study/runs/*/run/evaluation/findings.json": "json",
    "study/runs/*/run/evaluation/*.parquet": "parquet",
}
CHECKSUMMED = tuple(FILES)
SHARE = 0.5  # of the cases of other kinds: each reads four runs


def make(folder: Path) -> None:
    """Copy a finished study."""
    copy_study(folder)


def read(folder: Path) -> object:
    """Read the results of all runs."""
    states = [evaluation_state(run) for run in sorted((folder / "study" / "runs").glob("*/run"))]
    results = read_runs([folder / "study"])
    return states, {**vars(results), "epochs": results.epochs.drop(columns="seconds", errors="ignore")}
