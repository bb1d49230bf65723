"""VGG-19 in plain torch, without its last layer; its parameters have torchvision's names."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from ..files import read_tensors
from .resnet import load_torchvision

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


class Vgg19(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, 4096): sixteen 3x3 convolutions, 7 x 7 cells, two linear layers with ReLU.

    weights: a file with torchvision's names, `classifier.6` (the 1000 classes) dropped. Dropout 0.5 in training.
    Source: Simonyan & Zisserman 2015, configuration E.
    """

    width = 4096

    def __init__(self, weights: Path | None = None) -> None:
        super().__init__()
        self.features = nn.Sequential(*_convolutions())
        self.pool = nn.AdaptiveAvgPool2d(7)
        first, second = nn.Linear(512 * 49, self.width), nn.Linear(self.width, self.width)
        self.classifier = nn.Sequential(first, nn.ReLU(), nn.Dropout(), second, nn.ReLU(), nn.Dropout())
        if weights is not None:
            load_torchvision(self, read_tensors(weights), ("classifier.6.",))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.classifier(self.pool(self.features(pixels)).flatten(1))  # type: ignore[no-any-return]


def _convolutions() -> list[nn.Module]:
    layers: list[nn.Module] = []
    before = 3
    for width, count in _STAGES:
        for _ in range(count):
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            before = width
        layers.append(nn.MaxPool2d(2, 2))
    return layers
