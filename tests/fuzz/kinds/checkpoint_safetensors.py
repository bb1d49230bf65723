"""A checkpoint as .safetensors and .json."""

from __future__ import annotations

from pathlib import Path

from lossscope.sources.checkpoints.checkpoint import Checkpoint, verify
from tests.fuzz.trained import tiny_run

FILES = {"model.safetensors": "safetensors", "model.json": "json"}
CHECKSUMMED = ("model.safetensors", "model.json")


def make(folder: Path) -> None:
    """Convert the best checkpoint of a short training."""
    Checkpoint.load(tiny_run() / "best.pt").save(folder / "model.safetensors")


def read(folder: Path) -> object:
    """Verify the file, and load it as every command does."""
    path = folder / "model.safetensors"
    return verify(path), Checkpoint.load(path)
