"""Files of judgements in every format: Flickr8k's, ECCV Caption's, CxC's, and pairs in CSV."""

from __future__ import annotations

from pathlib import Path

from lossscope.datasets.judgements.any_format import read_judgements
from tests.datasets.judgements.judged_files import FILES as NAMES
from tests.datasets.judgements.judged_files import write

FILES = {"*.txt": "text", "*.csv": "csv", "*.json": "json"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write one file of each format."""
    write(folder)


def read(folder: Path) -> object:
    """Read all of them."""
    files = [read_judgements(folder / name) for name in NAMES]
    return [[list(judgements.first), list(judgements.second), list(judgements.positive)] for judgements in files]
