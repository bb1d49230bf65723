"""The image of each caption as a text, one number a line (--caption-image)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import dump_arrays

FILES = {"rows.txt": "text"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a dump without rows, and the rows."""
    arrays = dump_arrays()
    (folder / "rows.txt").write_text("".join(f"{row}\n" for row in arrays.pop("caption_image")), encoding="utf-8")
    np.savez(folder / "dump.npz", **arrays)


def read(folder: Path) -> object:
    """Open the dump with its rows."""
    return numbers_of(folder / "dump.npz", caption_image=folder / "rows.txt")
