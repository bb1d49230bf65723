"""Tensors of two sides in a torch file, as every command opens it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tests.fuzz.results import numbers_of

FILES = {"dump.pt": "torch_zip"}
CHECKSUMMED = ("dump.pt",)  # by the zip
ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype("f4")


def make(folder: Path) -> None:
    """Write twelve queries and documents."""
    torch.save(
        {"queries": torch.from_numpy(ROWS), "documents": torch.from_numpy(ROWS[::-1].copy())}, folder / "dump.pt"
    )


def read(folder: Path) -> object:
    """Open it, and compare its inputs."""
    return numbers_of(folder / "dump.pt")
