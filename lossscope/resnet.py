"""A residual network through transformers, read from weights that carry torchvision's parameter names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from .encoders.base import require_fit
from .errors import InputError
from .files import read_tensors

DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3), "resnet152": (3, 8, 36, 3)}


class Resnet(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, width) pooled features. Raises InputError without transformers."""

    def __init__(self, depths: tuple[int, ...], weights: Path | None = None) -> None:
        super().__init__()
        config_class, model_class = _transformers()
        basic = depths == DEPTHS["resnet18"]
        hidden = [64, 128, 256, 512] if basic else [256, 512, 1024, 2048]
        kind = "basic" if basic else "bottleneck"
        self.width = hidden[-1]
        config = config_class(depths=list(depths), hidden_sizes=hidden, layer_type=kind)
        self.net = model_class(config)
        if weights is not None:
            self.net.load_state_dict(from_torchvision(read_tensors(weights), self.net.state_dict()))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.net(pixels).pooler_output.flatten(1)  # type: ignore[no-any-return]


def from_torchvision(theirs: dict[str, Tensor], ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Parameters under torchvision's names -> under transformers' names; `fc` and `module.` are dropped.

    Raises InputError naming the first parameter that is missing, left over, or of another shape.
    """
    theirs = {key.removeprefix("module."): value for key, value in theirs.items()}
    theirs = {key: value for key, value in theirs.items() if not key.startswith("fc.")}
    renamed = {_renamed(key): value for key, value in theirs.items()}
    for key, value in ours.items():
        if key.endswith("num_batches_tracked"):
            renamed.setdefault(key, value)
    require_fit(ours, renamed, "a network of this depth")
    return renamed


def _renamed(key: str) -> str:
    if key.startswith("conv1."):
        return key.replace("conv1.", "embedder.embedder.convolution.")
    if key.startswith("bn1."):
        return key.replace("bn1.", "embedder.embedder.normalization.")
    block = re.fullmatch(r"layer(\d)\.(\d+)\.(?P<rest>.+)", key)
    if not block:
        return key
    head = f"encoder.stages.{int(block[1]) - 1}.layers.{block[2]}."
    rest = block["rest"]
    rest = re.sub(r"^conv(\d)\.", lambda m: f"layer.{int(m[1]) - 1}.convolution.", rest)
    rest = re.sub(r"^bn(\d)\.", lambda m: f"layer.{int(m[1]) - 1}.normalization.", rest)
    rest = rest.replace("downsample.0.", "shortcut.convolution.").replace("downsample.1.", "shortcut.normalization.")
    return head + rest


def _transformers() -> tuple[Any, Any]:
    try:
        from transformers import ResNetConfig, ResNetModel
    except ImportError as error:
        raise InputError("resnet towers need transformers; install lossscope[hf]") from error
    return ResNetConfig, ResNetModel
