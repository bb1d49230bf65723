"""A square matrix of similarities (.npy), as every command opens it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.results import numbers_of

FILES = {"S.npy": "npy"}
CHECKSUMMED = ()
ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype("f4")


def make(folder: Path) -> None:
    """Write a matrix of twelve queries."""
    np.save(folder / "S.npy", ROWS @ ROWS[::-1].T[:, :12])


def read(folder: Path) -> object:
    """Open it, and compare its inputs."""
    return numbers_of(folder / "S.npy")
