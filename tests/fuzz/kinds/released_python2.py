"""A released checkpoint as torch wrote it before its files were zips, read with --old-pickle."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.kinds import released_legacy
from tests.fuzz.released import open_vsepp

FILES = {"model_best.pth.tar": "torch_legacy"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write the file in the old format."""
    released_legacy.make(folder)


def read(folder: Path) -> object:
    """Convert it with the restricted unpickler."""
    return open_vsepp(folder, old_pickle=True)
