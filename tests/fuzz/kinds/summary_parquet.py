"""Summary rows (.parquet), as `lossscope render` reads them."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from tests.fuzz.commands import run_command
from tests.fuzz.trained import tiny_run

FILES = {"rows.parquet": "parquet"}
CHECKSUMMED = ()  # other programs write it


def make(folder: Path) -> None:
    """Evaluate a short training."""
    text = run_command("eval", str(tiny_run()), "--format", "csv", "--no-cache", "--quiet")
    pd.read_csv(io.StringIO(text)).to_parquet(folder / "rows.parquet")


def read(folder: Path) -> object:
    """Make the table for papers; summary_rows makes that for programs."""
    return run_command("table", "retrieval", "rows.parquet", "--format", "latex")
