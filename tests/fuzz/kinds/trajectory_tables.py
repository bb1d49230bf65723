"""The tables of a run, as `lossscope trajectory` draws them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fuzz.commands import run_command
from tests.fuzz.trained import tiny_run

FILES = {"run/metrics.csv": "csv", "run/trajectory.csv": "csv", "run/config.toml": "toml"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: each draws


def make(folder: Path) -> None:
    """Copy the tables of a short training."""
    (folder / "run").mkdir()
    for name in ("metrics.csv", "trajectory.csv", "config.toml", "events.jsonl"):
        shutil.copy(tiny_run() / name, folder / "run" / name)


def read(folder: Path) -> object:
    """Draw them, and return the rows."""
    return run_command("trajectory", "run", "--out", "out.png", "--format", "json")
