"""A dump of queries and documents (.safetensors), whose tensors may be of types that numpy lacks."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from tests.fuzz.any_sides import everything_of, pair_arrays

FILES = {"dump.safetensors": "safetensors"}
CHECKSUMMED = ()  # the format has none, and other programs write it


def make(folder: Path) -> None:
    """Write the arrays."""
    save_file(pair_arrays(), folder / "dump.safetensors")


def read(folder: Path) -> object:
    """Open it under typed names, sweep and evaluate it."""
    return everything_of(folder / "dump.safetensors", sides="question/answer")
