"""Pictures and captions in the format of COCO."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_coco import write
from tests.fuzz.results import rows_of

FILES = {"annotations/*.json": "json", "images/train2014/*.png": "picture", "images": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder, "annotations/captions_train2014.json", "images/train2014", range(4))


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"coco:root={folder},size=4", "train")
