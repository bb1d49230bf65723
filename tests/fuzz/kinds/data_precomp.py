"""Precomputed features and captions."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_precomp import write
from tests.fuzz.results import rows_of

FILES = {"train_ims.npy": "npy", "train_caps.txt": "text", ".": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder, images=4, captions=20, shape=(2, 3))


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"precomp:root={folder}", "train")
