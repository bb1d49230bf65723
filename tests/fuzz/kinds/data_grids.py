"""Pictures by id, in the folders of VSE-infinity."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_grids import write
from tests.fuzz.results import rows_of

FILES = {"id_mapping.json": "json", "precomp/*.txt": "text", "images/sub/*.png": "picture"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder)


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"grids:root={folder},size=4", "train")
