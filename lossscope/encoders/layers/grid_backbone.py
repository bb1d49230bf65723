"""The convolutional network of VSE-infinity's grids, and the three naming schemes of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch

from .pooled_resnet import identify_resnet, load_torchvision
from .residual_network import RESNETS, ResidualNetwork

_DETECTOR_NAMES = {
    "base.0.": "conv1.", "base.1.": "bn1.", "base.4.": "layer1.", "base.5.": "layer2.", "base.6.": "layer3.",
    "top.0.": "layer4.",
}  # fmt: skip


_SOURCES = {
    "imagenet": "resnet101_caffe",
    "imagenet_res50": "resnet50_caffe",
    "imagenet_res152": "resnet152_caffe",
    "imagenet_resnext": "resnext101",
}
"""Option backbone_source -> key of RESNETS; names with `detector` or `wsl` in them stand for one network each."""


class Backbone(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, cells, 2048), cells row by row; batch norms always as in eval.

    Args:
        name: a key of RESNETS; `detector` reads other pixels than the rest.
        weights: a file with torchvision's names, or with `base` and `top` (the detector's).
    """

    def __init__(self, name: str, weights: Path | None = None) -> None:
        super().__init__()
        self.resnet = ResidualNetwork(RESNETS[name])
        self.width = self.resnet.width
        self.detector = name == "detector"
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
    """Return the tensors of a backbone's file under torchvision's names; base and top may be nested dicts.

    Raises InputError when it holds no such tensors.
    """
    content = read_safetensors(path) if path.suffix == ".safetensors" else read_torch(path)
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if isinstance(content, Mapping) and {"base", "top"} <= content.keys():
        content = {
            f"{part}.{k}": v for part in ("base", "top") for k, v in _require_tensors(content[part], path).items()
        }
    return {torchvision_name(k.removeprefix("module.")): v for k, v in _require_tensors(content, path).items()}


def torchvision_name(name: str) -> str:
    """Return `layer1.0.conv1.weight` for `base.4.0.conv1.weight`; other names unchanged."""
    for prefix, renamed in _DETECTOR_NAMES.items():
        if name.startswith(prefix):
            return renamed + name.removeprefix(prefix)
    return name


def drop_duplicate_backbone(tower: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the tensors of a released grid tower, each once, and the names left out.

    Files hold the backbone twice, as `backbone.resnet.*` and as `backbone.base.*` with `backbone.top.*`. Raises
    InputError unless the two sets have the same names and values; resnet's fc, which nothing reads, is left out.
    """
    names = {name.removeprefix("backbone.") for name in tower if name.startswith("backbone.")}
    resnet_names = {n.removeprefix("resnet."): n for n in names if n.startswith("resnet.") and ".fc." not in n}
    split_names = {torchvision_name(n): n for n in names if not n.startswith("resnet.")}
    for name in sorted(resnet_names.keys() ^ split_names.keys()):
        got = resnet_names.get(name, split_names.get(name))
        raise InputError(f"the backbone must be in the file both as resnet and as base and top; only backbone.{got} is")
    for name in sorted(resnet_names):
        if not torch.equal(tower[f"backbone.{resnet_names[name]}"], tower[f"backbone.{split_names[name]}"]):
            raise InputError(
                f"backbone.{resnet_names[name]} must equal backbone.{split_names[name]}; they differ, so the file "
                "has damage"
            )
    left_out = {f"backbone.{n}" for n in names} - {f"backbone.{n}" for n in resnet_names.values()}
    return {k: v for k, v in tower.items() if k not in left_out}, tuple(sorted(left_out))


def identify_backbone(tower: Mapping[str, Tensor], source: str) -> str:
    """Return the key of RESNETS that a released grid tower's network has.

    Raises InputError for a source that the authors' code does not have, or that the tensors contradict.

    Args:
        tower: its tensors.
        source: its option backbone_source.
    """
    name = _network_of(source)
    depth = identify_resnet(k.removeprefix("backbone.resnet.") for k in tower if k.startswith("backbone.resnet."))
    held = "resnext101" if depth == "resnet101" and is_resnext(tower) else depth
    if held != {"detector": "resnet101"}.get(name, name.removesuffix("_caffe")):
        raise InputError(f"option backbone_source of the file must be of its tensors' {held}; got {source!r}")
    return name


def is_resnext(tower: Mapping[str, Tensor]) -> bool:
    """Return whether a released grid tower's network has the widths of ResNeXt-101 32x8d."""
    first = tower.get("backbone.resnet.layer1.0.conv1.weight")
    return first is not None and first.ndim == 4 and first.shape[0] == 256


def _network_of(source: str) -> str:
    """Return the key of RESNETS of an option backbone_source. Raises InputError for an unknown one."""
    if "detector" in source:
        return "detector"
    if source not in _SOURCES and "wsl" not in source:
        known = ", ".join(("detector", *_SOURCES))
        raise InputError(f"option backbone_source of the file must be {known}, or hold wsl; got {source[:60]!r}")
    return _SOURCES.get(source, "resnext101")


def _require_tensors(content: object, path: Path) -> dict[str, Tensor]:
    """Return a dict of tensors. Raises InputError for anything else."""
    if not isinstance(content, Mapping) or not all(isinstance(v, Tensor) for v in content.values()):
        raise InputError(f"{path} must hold a dict of tensors, or one each under base and top; it does not")
    return {str(k): v for k, v in content.items()}
