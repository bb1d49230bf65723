"""The convolutional network under VSE-infinity's grids: how it runs, and the three sets of names its files have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch

from .pooled_resnet import load_torchvision, network_of
from .residual_network import PLANS, GridNet

_PARTS = {
    "base.0.": "conv1.", "base.1.": "bn1.", "base.4.": "layer1.", "base.5.": "layer2.", "base.6.": "layer3.",
    "top.0.": "layer4.",
}  # fmt: skip


class Backbone(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, cells, 2048), cells row by row; batch norms always as in eval.

    name: one of gridnet.PLANS. weights: a file with torchvision's names, or with `base` and `top` (the detector's).
    """

    def __init__(self, name: str, weights: Path | None = None) -> None:
        super().__init__()
        self.resnet = GridNet(PLANS[name])
        self.width = self.resnet.width
        self.detector = PLANS[name].caffe
        if weights is not None:
            load_torchvision(self.resnet, read_backbone(weights))

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        self.resnet.eval()
        return self

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.resnet(pixels)
        return maps.flatten(2).transpose(1, 2)


def read_backbone(path: Path) -> dict[str, Tensor]:
    """Tensors of a backbone's file under torchvision's names; base and top may be dicts of their own.

    Raises InputError when it holds no such tensors.
    """
    found = read_safetensors(path) if path.suffix == ".safetensors" else read_torch(path)
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if isinstance(found, Mapping) and {"base", "top"} <= found.keys():
        found = {f"{part}.{k}": v for part in ("base", "top") for k, v in _named(found[part], path).items()}
    return {torchvision_name(k.removeprefix("module.")): v for k, v in _named(found, path).items()}


def torchvision_name(name: str) -> str:
    """`base.4.0.conv1.weight` -> `layer1.0.conv1.weight`; other names as they are."""
    for part, ours in _PARTS.items():
        if name.startswith(part):
            return ours + name.removeprefix(part)
    return name


def one_of_both(tower: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Tensors of an original grid tower, each once, and the names left out.

    Files hold the backbone twice, as `backbone.resnet.*` and as `backbone.base.*` with `backbone.top.*`. Raises
    InputError unless the two sets have the same names and values; resnet's fc, which nothing reads, is left out.
    """
    names = {name.removeprefix("backbone.") for name in tower if name.startswith("backbone.")}
    whole = {n.removeprefix("resnet."): n for n in names if n.startswith("resnet.") and ".fc." not in n}
    parts = {torchvision_name(n): n for n in names if not n.startswith("resnet.")}
    for name in sorted(whole.keys() ^ parts.keys()):
        got = whole.get(name, parts.get(name))
        raise InputError(f"the backbone must be in the file both as resnet and as base and top; only backbone.{got} is")
    for name in sorted(whole):
        if not torch.equal(tower[f"backbone.{whole[name]}"], tower[f"backbone.{parts[name]}"]):
            raise InputError(f"backbone.{whole[name]} must equal backbone.{parts[name]}; the file is damaged")
    left = {f"backbone.{n}" for n in names} - {f"backbone.{n}" for n in whole.values()}
    return {k: v for k, v in tower.items() if k not in left}, tuple(sorted(left))


def name_of(tower: Mapping[str, Tensor], source: str) -> str:
    """Which of gridnet.PLANS an original grid tower holds; source: its option, `detector` or another.

    Raises InputError when its blocks are none of ours.
    """
    found = network_of(k.removeprefix("backbone.resnet.") for k in tower if k.startswith("backbone.resnet."))
    grouped = tower["backbone.resnet.layer1.0.conv1.weight"].shape[0] == 256
    if found == "resnet101" and (grouped or source == "detector"):
        return "resnext101" if grouped else "detector"
    return found


def _named(found: object, path: Path) -> dict[str, Tensor]:
    if not isinstance(found, Mapping) or not all(isinstance(v, Tensor) for v in found.values()):
        raise InputError(f"{path} must hold a dict of tensors, or one each under base and top; it does not")
    return {str(k): v for k, v in found.items()}
