"""The network of an objective (meta_spn:net=FILE) as .pt and as .safetensors."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch

from lossscope.registry import build

FILES = {"net.pt": "torch_zip", "net.safetensors": "safetensors"}
CHECKSUMMED = ("net.pt",)


def make(folder: Path) -> None:
    """Write the network in both forms."""
    torch.manual_seed(0)
    state = {name: torch.randn_like(x) for name, x in build("objectives", "meta_spn").network().state_dict().items()}
    torch.save({"objective_state": state}, folder / "net.pt")
    safetensors.torch.save_file(state, folder / "net.safetensors")


def read(folder: Path) -> object:
    """Build the objective with each."""
    built = [build("objectives", f"meta_spn:net={folder / name}") for name in ("net.pt", "net.safetensors")]
    return [dict(objective.network().state_dict()) for objective in built]
