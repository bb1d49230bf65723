"""A residual network in plain torch, its parameters named as torchvision names them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


class Basic(nn.Module):
    expansion = 1

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(before, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (self.downsample(x) if self.downsample is not None else x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(before, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (self.downsample(x) if self.downsample is not None else x))


class Net(nn.Module):
    """(n, 3, H, W) -> (n, width) pooled features, the stride of a bottleneck in its 3x3 convolution (v1.5)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        block = Basic if name == "resnet18" else Bottleneck
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, count in enumerate(DEPTHS[name]):
            width = 64 * 2**stage
            blocks = []
            for index in range(count):
                blocks.append(block(before, width, 2 if stage and not index else 1))
                before = block.expansion * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(before, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return x.mean((2, 3))


def shortcut(before: int, after: int, stride: int) -> nn.Module | None:
    if before == after and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))


def random(name: str, seed: int = 0) -> Net:
    """Return a network in eval mode whose statistics differ from an untrained network's, so that a mix-up shows."""
    torch.manual_seed(seed)
    net = Net(name)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.0)
            nn.init.normal_(module.bias, 0, 0.1)
            nn.init.normal_(module.running_mean, 0, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return net.eval()
