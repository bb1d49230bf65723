"""Residual networks in plain torch whose parameters have torchvision's names: maps of features, or pooled vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Plan:
    """A residual network: blocks of each stage, and what its blocks are.

    basic: two 3x3 convolutions instead of 1x1, 3x3, 1x1. groups, base_width: of the 3x3 (ResNeXt-101 32x8d: 32, 8).
    caffe: the detector's network; its blocks stride in the first 1x1, and its pooling has no padding and rounds up.
    """

    depths: tuple[int, ...]
    basic: bool = False
    groups: int = 1
    base_width: int = 64
    caffe: bool = False

    @property
    def width(self) -> int:
        """Channels of the last map."""
        return 512 if self.basic else 2048


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "resnet18": Plan((2, 2, 2, 2), basic=True),
        "resnet50": Plan((3, 4, 6, 3)),
        "resnet101": Plan((3, 4, 23, 3)),
        "resnet152": Plan((3, 8, 36, 3)),
        "resnext101": Plan((3, 4, 23, 3), groups=32, base_width=8),
        "detector": Plan((3, 4, 23, 3), caffe=True),
    }
)


class GridNet(nn.Module):
    """(n, 3, H, W) normalised pixels -> (n, width, about H/32, about W/32) features.

    Names are torchvision's: conv1, bn1, layer1..layer4 with conv1..conv3, bn1..bn3 and downsample.0, .1; there is no
    fc. Convolutions start He-normal (fan out), batch norms at weight 1 and bias 0. Source: He et al. 2016; Xie et al.
    2017; the stride in the 3x3 is that of torchvision, in the 1x1 (`caffe`) that of Anderson et al. 2018.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.width = plan.width
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 0, ceil_mode=True) if plan.caffe else nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, count in enumerate(plan.depths):
            blocks, before = _stage(plan, stage, count, before)
            self.add_module(f"layer{stage + 1}", blocks)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, pixels: Tensor) -> Tensor:
        maps = self.maxpool(self.bn1(self.conv1(pixels)).relu())
        for stage in range(1, 5):
            maps = self.get_submodule(f"layer{stage}")(maps)
        return maps  # type: ignore[no-any-return]


def _stage(plan: Plan, stage: int, count: int, before: int) -> tuple[nn.Module, int]:
    width = 64 * 2**stage
    after = width if plan.basic else 4 * width
    blocks: list[nn.Module] = []
    for place in range(count):
        stride = 2 if stage and not place else 1
        blocks.append(_Block(_convolutions(plan, before, width, stride), before, after, stride))
        before = after
    return nn.Sequential(*blocks), after


def _convolutions(plan: Plan, before: int, width: int, stride: int) -> list[nn.Conv2d]:
    if plan.basic:
        return [_conv(before, width, 3, stride), _conv(width, width, 3)]
    inner = width * plan.base_width // 64 * plan.groups
    first, second = (stride, 1) if plan.caffe else (1, stride)
    middle = _conv(inner, inner, 3, second, plan.groups)
    return [_conv(before, inner, 1, first), middle, _conv(inner, 4 * width, 1)]


class _Block(nn.Module):
    """relu(x' + BN(conv(... relu(BN(conv(x))))), x' = x, or its 1x1 convolution where the shape changes."""

    def __init__(self, convolutions: list[nn.Conv2d], before: int, after: int, stride: int) -> None:
        super().__init__()
        self.count = len(convolutions)
        for place, convolution in enumerate(convolutions, 1):
            self.add_module(f"conv{place}", convolution)
            self.add_module(f"bn{place}", nn.BatchNorm2d(convolution.out_channels))
        self.downsample: nn.Module | None = None
        if before != after or stride != 1:
            self.downsample = nn.Sequential(_conv(before, after, 1, stride), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for place in range(1, self.count + 1):
            y = self.get_submodule(f"bn{place}")(self.get_submodule(f"conv{place}")(y))
            y = y.relu() if place < self.count else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def _conv(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
