"""The last map of a residual network whose weights carry torchvision's parameter names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from lossscope.encoders.layers.pooled_resnet import DEPTHS, Resnet
from lossscope.io.files import fingerprint, require_file

from .base import IMAGENET, Extract, Features, Pixels, normalised, regions


@dataclass(frozen=True)
class ResnetMap:
    """x[r] = the network's last map at cell r, before pooling; R = H/32 * W/32 regions.

    weights: .pt or .safetensors file. net: its depth. pooled: one vector, the mean over the map, instead of regions.
    Pixels are normalised with ImageNet's mean and deviation. Source: He et al. 2016.
    """

    weights: Path
    net: Literal["resnet18", "resnet50", "resnet101", "resnet152"] = "resnet152"
    pooled: bool = False

    @property
    def identity(self) -> str:
        return f"{self!r} {fingerprint(require_file(self.weights))}"

    def open(self, device: str) -> Extract:
        """The network on the device, in eval mode."""
        model = Resnet(DEPTHS[self.net], self.weights).eval().to(device)

        def extract(pixels: Pixels) -> Features:
            with torch.inference_mode():
                images = normalised(pixels, *IMAGENET, device)
                return regions(model(images) if self.pooled else model.maps(images))

        return extract
