"""Captions as ids, and features, in the files of BFAN."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_precaps import write
from tests.fuzz.results import rows_of

FILES = {"train_precaps.txt": "text", "v.json": "json", "train_ims.npy": "npy"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder, ["4,5", "4,6", "5", "3,5,6", "6"])


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"precaps:root={folder},vocab={folder}/v.json", "train")
