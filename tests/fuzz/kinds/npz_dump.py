"""A dump of embeddings (.npz), as every command opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import dump_arrays

FILES = {"dump.npz": "npz"}
CHECKSUMMED = ("dump.npz",)


def make(folder: Path) -> None:
    """Write twelve images and two captions of each, with ids and texts."""
    texts: dict[str, Any] = {
        "image_id": np.array([f"i{n}" for n in range(12)]),
        "caption": np.array([f"text {n}" for n in range(24)]),
    }
    np.savez(folder / "dump.npz", **dump_arrays(), **texts)


def read(folder: Path) -> object:
    """Open the dump, and compare its inputs."""
    return numbers_of(folder / "dump.npz")
