"""A folder of `lossscope mine`, as training reads it."""

from __future__ import annotations

from pathlib import Path

from lossscope.training.offline_candidates import HardCandidates, mine_candidates
from tests.fuzz.vectors import embedded

FILES = {"mined/manifest.json": "json", "mined/*.safetensors": "safetensors", "mined": "folder"}
CHECKSUMMED = ("mined/manifest.json", "mined/*.safetensors")


def make(folder: Path) -> None:
    """Mine five candidates of every item."""
    mine_candidates(embedded(), folder / "mined", 5)


def read(folder: Path) -> object:
    """Read all of them."""
    return HardCandidates.read(folder / "mined")
