"""A TorchScript archive; lossscope reads its tensors and runs no program."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from lossscope.io.pickles.torchscript import read_torchscript
from tests.io.pickles.test_torchscript import Inner

FILES = {"model.pt": "torchscript"}
CHECKSUMMED = ("model.pt",)


def make(folder: Path) -> None:
    """Script a module with buffers and shared weights."""
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):
        model = torch.nn.Sequential(Inner(), Inner()).half().eval()
        torch.jit.save(torch.jit.script(model), str(folder / "model.pt"))


def read(folder: Path) -> object:
    """Read its tensors."""
    return read_torchscript(folder / "model.pt")
