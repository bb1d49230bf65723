"""A released checkpoint of VSE++ as torch wrote it before its files were zips."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.fuzz.released import open_vsepp, write_vsepp

FILES = {"model_best.pth.tar": "torch_legacy"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write the file in the old format."""
    write_vsepp(folder)
    content = torch.load(folder / "model_best.pth.tar", weights_only=False)
    torch.save(content, folder / "model_best.pth.tar", _use_new_zipfile_serialization=False)


def read(folder: Path) -> object:
    """Convert it."""
    return open_vsepp(folder)
