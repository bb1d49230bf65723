"""MSR-VTT: lists, captions, and features of videos as arrays."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_msrvtt import annotate, arrays, csv
from tests.fuzz.results import rows_of

FILES = {
    "*videodatainfo.json": "json",
    "*.csv": "csv",
    "features/*.npy": "npy",
    "features/*.json": "json",
    "features": "folder",
}
CHECKSUMMED = ("features/*.npy", "features/*.json")


def make(folder: Path) -> None:
    """Write a few items."""
    annotate(folder)
    arrays(folder)
    csv(folder, [("video9", "text 9 1"), ("video8", "said otherwise")])


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"msrvtt:root={folder},held=2", "train", "test")
