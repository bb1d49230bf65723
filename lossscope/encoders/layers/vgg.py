"""VGG-19 in plain torch, without its last layer; its parameters have torchvision's names."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from lossscope.io.files import read_tensors

from .pooled_resnet import load_torchvision

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
_CELLS = 7  # along each side of the map that the linear layers read


class Vgg19(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, 4096): sixteen 3x3 convolutions, 7 x 7 cells, two linear layers with ReLU.

    Dropout 0.5 in training. Source: Simonyan & Zisserman 2015, configuration E.

    Args:
        weights: a file with torchvision's names; `classifier.6` (the 1000 classes) is dropped.
    """

    width = 4096

    def __init__(self, weights: Path | None = None) -> None:
        super().__init__()
        self.features = nn.Sequential(*_convolutions())
        first, second = nn.Linear(512 * _CELLS**2, self.width), nn.Linear(self.width, self.width)
        self.classifier = nn.Sequential(first, nn.ReLU(), nn.Dropout(), second, nn.ReLU(), nn.Dropout())
        if weights is not None:
            load_torchvision(self, read_tensors(weights), ("classifier.6.",))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.classifier(adaptive_average(self.features(pixels), _CELLS).flatten(1))  # type: ignore[no-any-return]


def adaptive_average(maps: Tensor, cells: int) -> Tensor:
    """Return means over cells x cells windows, row i from ⌊i H / cells⌋ to ⌈(i + 1) H / cells⌉: (n, C, H, W) maps.

    The result of adaptive average pooling, as two matrix products whose gradient is deterministic on every device.
    """
    if maps.shape[-2:] == (cells, cells):
        return maps
    rows, columns = (_window_weights(size, cells).to(maps) for size in maps.shape[-2:])
    return rows @ maps @ columns.T


def _window_weights(size: int, cells: int) -> Tensor:
    """Return (cells, size): the weight of each place in each window."""
    first = torch.arange(cells)[:, None]
    begin, end = first * size // cells, -(-(first + 1) * size // cells)
    inside = (torch.arange(size) >= begin) & (torch.arange(size) < end)
    return inside / inside.sum(1, keepdim=True)


def _convolutions() -> list[nn.Module]:
    layers: list[nn.Module] = []
    channels = 3
    for width, count in _STAGES:
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2, 2))
    return layers
