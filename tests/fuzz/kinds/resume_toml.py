"""config.toml and probes.toml of a run, as --resume reads them."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.resuming import copy_stopped, resumed

FILES = {"run/config.toml": "toml", "run/probes.toml": "toml"}
CHECKSUMMED = ()
SHARE = 0.4  # of the cases of other kinds: each trains


def make(folder: Path) -> None:
    """Copy a run that was stopped."""
    copy_stopped(folder)


def read(folder: Path) -> object:
    """Resume it."""
    return resumed(folder)
