"""A dump of similarities (.npz), and the image of each caption in a file of its own (--caption-image)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import EACH, IMAGES

FILES = {"dump.npz": "npz", "rows.npy": "npy"}
CHECKSUMMED = ("dump.npz",)


def make(folder: Path) -> None:
    """Write a matrix of cosines."""
    S = np.random.default_rng(0).uniform(-1, 1, (IMAGES, IMAGES * EACH)).astype("f4")
    np.savez(folder / "dump.npz", similarity=S)
    np.save(folder / "rows.npy", np.repeat(np.arange(IMAGES), EACH))


def read(folder: Path) -> object:
    """Open the dump with its rows."""
    return numbers_of(folder / "dump.npz", caption_image=folder / "rows.npy")
