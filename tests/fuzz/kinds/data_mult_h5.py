"""MSR-VTT: features, times and captions of videos in the HDF5 files of MMT."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_msrvtt import annotate, csv, mult_h5
from tests.fuzz.results import rows_of

FILES = {"mult/v/i/d/*.h5": "hdf5"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    annotate(folder)
    csv(folder, [("video9", "text 9 1"), ("video8", "said otherwise")])
    mult_h5(folder)


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"msrvtt:root={folder},layout=mult-h5,features=mult,annotations=mult-h5,held=0", "train", "test")
