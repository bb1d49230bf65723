"""Cached embeddings of a checkpoint: damaged ones are computed again, to the same numbers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.fuzz.results import numbers_of
from tests.fuzz.trained import tiny_run

FILES = {"cache/*.safetensors": "safetensors"}
CHECKSUMMED = ("cache/*.safetensors",)
SHARE = 0.5  # of the cases of other kinds: most embed


def make(folder: Path) -> None:
    """Write a checkpoint, and the cache of its training split."""
    shutil.copy(tiny_run() / "best.pt", folder / "model.pt")
    before = os.environ.get("LOSSSCOPE_CACHE")
    os.environ["LOSSSCOPE_CACHE"] = str(folder / "cache")
    try:
        numbers_of(folder / "model.pt", cache=True)
    finally:
        del os.environ["LOSSSCOPE_CACHE"]
        os.environ |= {} if before is None else {"LOSSSCOPE_CACHE": before}


def read(folder: Path) -> object:
    """Open the checkpoint with its cache, which the worker's environment names."""
    return numbers_of(folder / "model.pt", cache=True)
