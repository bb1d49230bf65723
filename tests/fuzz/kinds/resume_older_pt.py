"""The last.pt of a run in the format before digests, as --resume reads it."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.resuming import copy_stopped, resume_and_read
from tests.fuzz.trained import without_digests

FILES = {"run/checkpoints/last.pt": "torch_zip"}
CHECKSUMMED = ("run/checkpoints/last.pt",)  # by the zip
SHARE = 0.4  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a run that was stopped."""
    copy_stopped(folder)
    without_digests(folder / "run" / "checkpoints" / "last.pt")


def read(folder: Path) -> object:
    """Resume it."""
    return resume_and_read(folder)
