"""The tables of a run, as --resume continues them."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.resuming import copy_stopped, resumed

FILES = {"run/*.csv": "csv"}
CHECKSUMMED = ()
SHARE = 0.4  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a run that was stopped."""
    copy_stopped(folder)


def read(folder: Path) -> object:
    """Resume it."""
    return resumed(folder)
