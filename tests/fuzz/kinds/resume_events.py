"""events.jsonl of a run and the other files of its folder, as --resume finds them."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.resuming import copy_stopped, resumed

FILES = {"run/events.jsonl": "jsonl", "run": "folder"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a run that was stopped."""
    copy_stopped(folder)


def read(folder: Path) -> object:
    """Resume it."""
    return resumed(folder)
