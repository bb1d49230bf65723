"""A folder of `lossscope mine` that lacks its last part, as the same command resumes it."""

from __future__ import annotations

from pathlib import Path

from lossscope.training.offline_candidates import mine_candidates
from tests.fuzz.kinds import offline_candidates
from tests.fuzz.vectors import embedded

FILES = {"mined/manifest.json": "json", "mined/*.safetensors": "safetensors", "mined": "folder"}
CHECKSUMMED = ("mined/manifest.json", "mined/*.safetensors")


def make(folder: Path) -> None:
    """Mine, and remove the last part."""
    offline_candidates.make(folder)
    max((folder / "mined").glob("*.safetensors")).unlink()


def read(folder: Path) -> object:
    """Mine the missing part."""
    return mine_candidates(embedded(), folder / "mined", 5)
