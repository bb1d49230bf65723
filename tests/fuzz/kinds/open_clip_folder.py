"""A folder of open_clip: configuration and weights."""

from __future__ import annotations

from pathlib import Path

from tests.authors.clip_files import write_merges
from tests.authors.test_open_clip import write_folder
from tests.fuzz.released import open_model

FILES = {"clip/open_clip_config.json": "json", "clip/open_clip_pytorch_model.bin": "torch_zip"}
CHECKSUMMED = ("clip/open_clip_pytorch_model.bin",)


def make(folder: Path) -> None:
    """Write a small model, and byte pairs beside it."""
    write_folder("ViT-B-32", folder / "clip")
    write_merges(folder / "merges.txt.gz")


def read(folder: Path) -> object:
    """Open it, and build its model."""
    return open_model(folder / "clip", folder / "merges.txt.gz", "scenes:size=64")
