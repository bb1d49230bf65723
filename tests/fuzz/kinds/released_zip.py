"""A released checkpoint of VSE++ (.pth.tar, a torch zip), as `lossscope convert` opens it."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.released import open_vsepp, write_vsepp

FILES = {"model_best.pth.tar": "torch_zip"}
CHECKSUMMED = ("model_best.pth.tar",)


def make(folder: Path) -> None:
    """Write the file as its authors do, with the vocabulary beside it."""
    write_vsepp(folder)


def read(folder: Path) -> object:
    """Convert it."""
    return open_vsepp(folder)
