"""A checkpoint (.pt) of the format before digests, so that the reader meets damaged types and specs."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.kinds import checkpoint_pt
from tests.fuzz.trained import without_digests

FILES = {"model.pt": "torch_zip"}
CHECKSUMMED = ("model.pt",)  # by the zip


def make(folder: Path) -> None:
    """Copy the best checkpoint of a short training."""
    checkpoint_pt.make(folder)
    without_digests(folder / "model.pt")


def read(folder: Path) -> object:
    """Verify the file, and load it as every command does."""
    return checkpoint_pt.read(folder)
