"""Pictures and captions in the format of Karpathy."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_karpathy import write
from tests.fuzz.results import rows_of

FILES = {"dataset_toy.json": "json", "images/*.png": "picture", "images": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder)


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"karpathy:root={folder},name=toy,size=4", "train", "test")
