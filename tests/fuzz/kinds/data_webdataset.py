"""Samples in tar shards."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_webdataset import samples, write
from tests.fuzz.results import rows_of

FILES = {"*.tar": "tar"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder / "f-train-000.tar", samples(range(3)))
    write(folder / "f-train-001.tar", samples(range(3, 5)))


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"webdataset:shards={folder}/*.tar,size=4", "train")
