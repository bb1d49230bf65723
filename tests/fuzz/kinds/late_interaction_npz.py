"""A dump of token vectors (.npz), scored by late interaction."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.any_sides import everything_of, token_arrays

FILES = {"dump.npz": "npz"}
CHECKSUMMED = ("dump.npz",)


def make(folder: Path) -> None:
    """Write the tokens of a few queries and documents."""
    np.savez(folder / "dump.npz", **token_arrays())


def read(folder: Path) -> object:
    """Open, sweep and evaluate it."""
    return everything_of(folder / "dump.npz")
