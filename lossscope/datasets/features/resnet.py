"""The last feature map of a ResNet whose weights have torchvision's parameter names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from lossscope.core.float32_products import float32_products
from lossscope.encoders.layers.pooled_resnet import DEPTHS, Resnet
from lossscope.io.files import fingerprint, require_file

from .base import IMAGENET, Extract, Features, Pixels, normalise_pixels, to_regions


@dataclass(frozen=True)
class ResnetMap:
    """x[r] = the last feature map at cell r, before pooling; R = H/32 * W/32 regions.

    Pixels are normalised with ImageNet's mean and deviation.
    Source: He et al. 2016.
    """

    weights: Path  # .pt or .safetensors file
    net: Literal["resnet18", "resnet50", "resnet101", "resnet152"] = "resnet152"  # network that the weights are of
    pooled: bool = False  # one vector, the mean over the map, instead of regions

    @property
    def identity(self) -> str:
        return f"{self!r} {fingerprint(require_file(self.weights))}"

    def open(self, device: str) -> Extract:
        """Load the network on the device, in eval mode."""
        model = Resnet(DEPTHS[self.net], self.weights).eval().to(device)

        @float32_products()
        def extract(pixels: Pixels) -> Features:
            with torch.inference_mode():
                images = normalise_pixels(pixels, *IMAGENET, device)
                return to_regions(model(images) if self.pooled else model.maps(images))

        return extract
