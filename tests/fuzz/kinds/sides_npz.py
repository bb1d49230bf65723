"""A dump of two named sides (.npz) with their pairs, mined negatives, ids and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.any_sides import DOCUMENTS, QUERIES, everything_of, pair_arrays

FILES = {"dump.npz": "npz"}
CHECKSUMMED = ("dump.npz",)


def make(folder: Path) -> None:
    """Write the arrays and the names of the sides."""
    names: dict[str, Any] = {
        "sides": np.array(["query", "document"]),
        "query_id": np.array([f"q{n}" for n in range(QUERIES)]),
        "document_text": np.array([f"text {n % 9}" for n in range(DOCUMENTS)]),
    }
    np.savez(folder / "dump.npz", **pair_arrays(), **names)


def read(folder: Path) -> object:
    """Open, sweep and evaluate it."""
    return everything_of(folder / "dump.npz")
