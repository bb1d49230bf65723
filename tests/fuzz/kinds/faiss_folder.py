"""A folder of flat FAISS indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import dump_arrays

FILES = {"dump/*.faiss": "picture"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write an index of images and one of captions."""
    import faiss

    (folder / "dump").mkdir()
    for name in ("images", "captions"):
        vectors = np.ascontiguousarray(dump_arrays()[name])
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        faiss.write_index(index, str(folder / "dump" / f"{name}.faiss"))


def read(folder: Path) -> object:
    """Open the folder."""
    return numbers_of(folder / "dump")
