"""The matrix that VSE-infinity saves, a .npy of a pickled dict, as `lossscope data similarity` converts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lossscope.datasets.conversion.vse_infinity import convert

FILES = {"results.npy": "npy"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a matrix of four images."""
    S = np.random.default_rng(0).uniform(-1, 1, (4, 20)).astype("f4")
    content: Any = {"npts": 4, "sims": S}
    np.save(folder / "results.npy", content, allow_pickle=True)


def read(folder: Path) -> object:
    """Convert it and return what was written."""
    counts = convert(folder / "results.npy", folder / "out.npz")
    with np.load(folder / "out.npz") as arrays:
        return counts, {name: arrays[name] for name in arrays.files}
