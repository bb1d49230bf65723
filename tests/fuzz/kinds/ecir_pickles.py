"""The pickled sets of the ECIR 2022 reproduction, as `lossscope data ecir` converts them."""

from __future__ import annotations

from pathlib import Path

from lossscope.datasets.conversion.ecir import convert
from tests.datasets.conversion.test_ecir import one_set, write

FILES = {"*.p": "pickle"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write three sets of a few pictures."""
    write(folder, train=one_set(0), val=one_set(10, 1), test=one_set(20, 3))


def read(folder: Path) -> object:
    """Convert them and return what was written."""
    result = convert(folder, folder / "out", "f30k")
    return result, {str(file.relative_to(folder)): file.read_bytes() for file in sorted((folder / "out").rglob("*.*"))}
