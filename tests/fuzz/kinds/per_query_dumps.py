"""Two dumps that `lossscope compare` compares, query by query."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.commands import run_command
from tests.fuzz.vectors import dump_arrays

FILES = {"a.npz": "npz"}
CHECKSUMMED = ("a.npz",)
SHARE = 0.5  # of the cases of other kinds: each compares


def make(folder: Path) -> None:
    """Write two dumps of the same items."""
    arrays = dump_arrays()
    np.savez(folder / "a.npz", **arrays)
    np.savez(folder / "b.npz", **{**arrays, "captions": arrays["captions"] + 0.1})


def read(folder: Path) -> object:
    """Compare them."""
    return run_command("compare", "a.npz", "b.npz", "--resamples", "99", "--format", "csv", "--quiet")
