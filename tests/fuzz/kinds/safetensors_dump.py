"""A dump of embeddings (.safetensors)."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import dump_arrays

FILES = {"dump.safetensors": "safetensors"}
CHECKSUMMED = ()  # the format has none, and other programs write it


def make(folder: Path) -> None:
    """Write twelve images and two captions of each."""
    save_file(dump_arrays(), folder / "dump.safetensors")


def read(folder: Path) -> object:
    """Open the dump."""
    return numbers_of(folder / "dump.safetensors")
