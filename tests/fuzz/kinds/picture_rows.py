"""Rows of a weight field (.csv), as `lossscope render` draws them."""

from __future__ import annotations

from pathlib import Path

from lossscope.engine.weight_fields import weight_field
from tests.fuzz.commands import run_command

FILES = {"field.csv": "csv"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: a picture takes a second


def make(folder: Path) -> None:
    """Write a coarse field of a loss."""
    weight_field("ntxent", points=9).to_csv(folder / "field.csv", index=False)


def read(folder: Path) -> object:
    """Draw it."""
    run_command("plot", "weight_field", "field.csv", "--out", "out.svg")
    return (folder / "out.svg").is_file()
