"""A folder of `lossscope data features` that lacks its last file, as the same command resumes it."""

from __future__ import annotations

from pathlib import Path

from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.registry import build
from tests.fuzz.results import rows_of

DATA = "scenes:train=12,val=4,test=4,size=16"
FILES = {"out/manifest.json": "json", "out/*.npy": "npy", "out/*.txt": "text", "out": "folder"}
CHECKSUMMED = ("out/manifest.json", "out/*.npy")


def make(folder: Path) -> None:
    """Extract, and remove the file that is written last."""
    _extract(folder / "out")
    (folder / "out" / "test_caps.txt").unlink()


def read(folder: Path) -> object:
    """Resume, and read the data set."""
    _extract(folder / "out")
    return rows_of(f"precomp:root={folder / 'out'}", "train", "test")


def _extract(out: Path) -> None:
    Extraction(DATA, build("datasets", DATA), build("features", "hog-grid"), out).run()
