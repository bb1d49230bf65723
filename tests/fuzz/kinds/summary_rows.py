"""Summary rows (.csv), as `lossscope render` reads them."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.commands import run_command
from tests.fuzz.trained import tiny_run

FILES = {"rows.csv": "csv"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Count the samples of a short training."""
    text = run_command("cocos", str(tiny_run()), "--format", "csv", "--no-cache", "--quiet")
    (folder / "rows.csv").write_text(text, encoding="utf-8")


def read(folder: Path) -> object:
    """Make the table for programs; summary_parquet makes that for papers."""
    return run_command("table", "cocos_softmax", "rows.csv", "--format", "csv")
