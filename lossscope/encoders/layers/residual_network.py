"""Residual networks in plain torch with torchvision's parameter names: feature maps, not pooled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class ResnetConfig:
    """A residual network: the number of blocks in each stage, and what its blocks are."""

    depths: tuple[int, ...]  # blocks of each stage
    basic: bool = False  # two 3x3 convolutions instead of 1x1, 3x3, 1x1
    groups: int = 1  # of the 3x3 convolution (ResNeXt-101 32x8d: 32)
    base_width: int = 64  # of the 3x3 convolution (ResNeXt-101 32x8d: 8)
    caffe: bool = False  # Caffe's plan: blocks stride in the first 1x1, pooling is unpadded and rounds up

    @property
    def width(self) -> int:
        """Number of channels of the last map."""
        return 512 if self.basic else 2048


RESNETS: Mapping[str, ResnetConfig] = MappingProxyType(
    {
        "resnet18": ResnetConfig((2, 2, 2, 2), basic=True),
        "resnet50": ResnetConfig((3, 4, 6, 3)),
        "resnet101": ResnetConfig((3, 4, 23, 3)),
        "resnet152": ResnetConfig((3, 8, 36, 3)),
        "resnext101": ResnetConfig((3, 4, 23, 3), groups=32, base_width=8),
        "resnet50_caffe": ResnetConfig((3, 4, 6, 3), caffe=True),
        "resnet101_caffe": ResnetConfig((3, 4, 23, 3), caffe=True),
        "resnet152_caffe": ResnetConfig((3, 8, 36, 3), caffe=True),
        "detector": ResnetConfig((3, 4, 23, 3), caffe=True),
    }
)


class ResidualNetwork(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, width, about H/32, about W/32) features.

    Names are torchvision's: conv1, bn1, layer1..layer4 with conv1..conv3, bn1..bn3 and downsample.0, .1; there is no
    fc. Convolutions start He-normal (fan out), batch norms at weight 1 and bias 0. Source: He et al. 2016; Xie et al.
    2017; the stride in the 3x3 is torchvision's, that in the 1x1 (`caffe`) is from Anderson et al. 2018.
    """

    def __init__(self, config: ResnetConfig) -> None:
        super().__init__()
        self.width = config.width
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 0, ceil_mode=True) if config.caffe else nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(config.depths):
            blocks, channels = _build_stage(config, stage, count, channels)
            self.add_module(f"layer{stage + 1}", blocks)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, pixels: Tensor) -> Tensor:
        maps = self.maxpool(self.bn1(self.conv1(pixels)).relu())
        for stage in range(1, 5):
            maps = self.get_submodule(f"layer{stage}")(maps)
        return maps  # type: ignore[no-any-return]


def _build_stage(config: ResnetConfig, stage: int, count: int, channels_in: int) -> tuple[nn.Module, int]:
    width = 64 * 2**stage
    channels_out = width if config.basic else 4 * width
    blocks: list[nn.Module] = []
    for index in range(count):
        stride = 2 if stage and not index else 1
        blocks.append(
            _Block(_build_convolutions(config, channels_in, width, stride), channels_in, channels_out, stride)
        )
        channels_in = channels_out
    return nn.Sequential(*blocks), channels_out


def _build_convolutions(config: ResnetConfig, channels_in: int, width: int, stride: int) -> list[nn.Conv2d]:
    if config.basic:
        return [_conv(channels_in, width, 3, stride), _conv(width, width, 3)]
    inner = width * config.base_width // 64 * config.groups
    first, second = (stride, 1) if config.caffe else (1, stride)
    middle = _conv(inner, inner, 3, second, config.groups)
    return [_conv(channels_in, inner, 1, first), middle, _conv(inner, 4 * width, 1)]


class _Block(nn.Module):
    """relu(x' + BN(conv(... relu(BN(conv(x))))), x' = x, or its 1x1 convolution where the shape changes."""

    def __init__(self, convolutions: list[nn.Conv2d], channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.count = len(convolutions)
        for index, convolution in enumerate(convolutions, 1):
            self.add_module(f"conv{index}", convolution)
            self.add_module(f"bn{index}", nn.BatchNorm2d(convolution.out_channels))
        self.downsample: nn.Module | None = None
        if channels_in != channels_out or stride != 1:
            self.downsample = nn.Sequential(_conv(channels_in, channels_out, 1, stride), nn.BatchNorm2d(channels_out))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for index in range(1, self.count + 1):
            y = self.get_submodule(f"bn{index}")(self.get_submodule(f"conv{index}")(y))
            y = y.relu() if index < self.count else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def _conv(channels_in: int, channels_out: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels_out, size, stride, size // 2, groups=groups, bias=False)
