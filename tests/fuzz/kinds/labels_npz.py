"""A dump of one labelled set (.npz)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.any_sides import WIDTH, everything_of

FILES = {"dump.npz": "npz"}
CHECKSUMMED = ("dump.npz",)


def make(folder: Path) -> None:
    """Write four classes of five items, with names."""
    embeddings = np.random.default_rng(2).normal(size=(20, WIDTH)).astype("f4")
    labels, ids = np.array([f"class {n % 4}" for n in range(20)]), np.array([f"i{n}" for n in range(20)])
    np.savez(folder / "dump.npz", embeddings=embeddings, labels=labels, sides=np.array(["product"]), product_id=ids)


def read(folder: Path) -> object:
    """Open, sweep and evaluate it."""
    return everything_of(folder / "dump.npz")
