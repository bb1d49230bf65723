"""A data set of two splits as save_to_disk writes it."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_saved import ROWS, write_splits
from tests.fuzz.results import texts_of

FILES = {"*/*.arrow": "arrow", "*/state.json": "json", "dataset_dict.json": "json", "train": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few rows."""
    write_splits(folder, train=ROWS[:6], test=ROWS[6:9])


def read(folder: Path) -> object:
    """Read all of it."""
    return texts_of(f"saved:root={folder}")
