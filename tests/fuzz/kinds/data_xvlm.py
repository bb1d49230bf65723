"""Lists of pictures and captions as X-VLM has them."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_xvlm import TEST, TRAIN, write
from tests.fuzz.results import rows_of

FILES = {"coco_train.json": "json", "coco_test.json": "json", "*.png": "picture"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder, TRAIN)
    write(folder, TEST, "test")


def read(folder: Path) -> object:
    """Read all of it."""
    return rows_of(f"xvlm:root={folder},name=coco,size=4", "train", "test")
