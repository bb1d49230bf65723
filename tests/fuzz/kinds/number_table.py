"""A table of numbers with a label in each row, as every command opens it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.fuzz.results import numbers_of

FILES = {"set.csv": "csv"}
CHECKSUMMED = ()
ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype("f4")


def make(folder: Path) -> None:
    """Write twelve rows of four classes."""
    pd.DataFrame(ROWS).assign(label=[f"c{n // 3}" for n in range(12)]).to_csv(folder / "set.csv", index=False)


def read(folder: Path) -> object:
    """Open it, and compare its inputs."""
    return numbers_of(folder / "set.csv")
