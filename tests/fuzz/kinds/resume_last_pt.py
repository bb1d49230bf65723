"""The last.pt of a run, as --resume reads it."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.resuming import copy_stopped, resumed

FILES = {"run/checkpoints/last.pt": "torch_zip"}
CHECKSUMMED = ("run/checkpoints/last.pt",)
SHARE = 0.4  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a run that was stopped."""
    copy_stopped(folder)


def read(folder: Path) -> object:
    """Resume it."""
    return resumed(folder)
