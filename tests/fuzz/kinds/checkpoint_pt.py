"""A checkpoint as one .pt: the verdict of `lossscope verify`, and its weights."""

from __future__ import annotations

import shutil
from pathlib import Path

from lossscope.sources.checkpoints.checkpoint import Checkpoint, verify
from tests.fuzz.trained import tiny_run

FILES = {"model.pt": "torch_zip"}
CHECKSUMMED = ("model.pt",)


def make(folder: Path) -> None:
    """Copy the best checkpoint of a short training."""
    shutil.copy(tiny_run() / "best.pt", folder / "model.pt")


def read(folder: Path) -> object:
    """Verify the file, and load it as every command does."""
    path = folder / "model.pt"
    return verify(path), Checkpoint.load(path)
