"""A frame: manifest, parts and rows of single queries."""

from __future__ import annotations

import shutil
from pathlib import Path

from lossscope.io.frames import Frame
from tests.fuzz.trained import tiny_frame

FILES = {"frame/manifest.json": "json", "frame/part-*.parquet": "parquet", "frame/query-*.parquet": "parquet"}
CHECKSUMMED = tuple(FILES)
SHARE = 0.5  # of the cases of other kinds: parquet is slow to read


def make(folder: Path) -> None:
    """Copy the frame of a short sweep."""
    shutil.copytree(tiny_frame(), folder / "frame")


def read(folder: Path) -> object:
    """Read all of it."""
    frame = Frame(folder / "frame")
    return frame.manifest(), frame.read(), frame.read("query"), sorted(frame.keys())
