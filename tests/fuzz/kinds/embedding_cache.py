"""Cached embeddings of a checkpoint: damaged ones are computed again, to the same numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fuzz.results import numbers_of, using_cache
from tests.fuzz.trained import tiny_run

FILES = {"cache/*/*.safetensors": "safetensors"}
CHECKSUMMED = ("cache/*/*.safetensors",)
SHARE = 0.5  # of the cases of other kinds: most embed


def make(folder: Path) -> None:
    """Write a checkpoint, and the cache of its training split."""
    shutil.copy(tiny_run() / "best.pt", folder / "model.pt")
    with using_cache(folder / "cache"):
        numbers_of(folder / "model.pt", cache=True)


def read(folder: Path) -> object:
    """Open the checkpoint with its cache, which the worker's environment names."""
    return numbers_of(folder / "model.pt", cache=True)
