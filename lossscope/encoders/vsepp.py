"""VSE++: an image tower and a GRU, meeting as unit vectors in one space."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..resnet import DEPTHS, Resnet
from ..similarity import normalise
from .base import Encoder, Side


@dataclass(frozen=True)
class VSEPP:
    """v = norm(fc(tower(image))), t = norm(GRU(words) at the last token), S = v · t.

    image: `cnn-small` (four convolutions, trains from scratch on a CPU), `linear` (precomputed vectors or regions),
    `resnet18|50|152` (extra [hf]; `weights` names a file with torchvision's parameter names; `finetune` trains it).
    dim: joint width. words: width of a word vector. width: channels of the first convolution of cnn-small;
    grid: cells along each side that its last map is averaged over (1: whole picture); centre: batch norm on its
    output. Without it a loss on hardest negatives that collapses draws all similarities to 1, with it to 0.
    pool: how regions become one vector (max, as Li et al. 2022 B.1.1; mean). word_init: word vectors start uniform in
    ±word_init; the original's 0.1 leaves the GRU almost without input at first, which costs epochs of plateau.
    Source: Faghri et al. 2018; Li et al. 2022, B.1.1.
    """

    image: Literal["cnn-small", "linear", "resnet18", "resnet50", "resnet152"] = "cnn-small"
    dim: int = 256
    words: int = 128
    width: int = 32
    grid: int = 4
    centre: bool = True
    pool: Literal["max", "mean"] = "max"
    word_init: float = 1.0
    weights: Path | None = None
    finetune: bool = False

    def __post_init__(self) -> None:
        if min(self.dim, self.words, self.width) < 1:
            raise InputError(f"dim, words and width must be at least 1; got {self.dim}, {self.words}, {self.width}")
        if not self.word_init > 0:
            raise InputError(f"word_init must be > 0; got {self.word_init}")
        if self.weights is not None and not self.image.startswith("resnet"):
            raise InputError(f"weights are for resnet towers; got image={self.image}")

    def build(self, item_shape: tuple[int, ...], vocabulary_size: int) -> Encoder:
        """A new model. Raises InputError when the tower does not take items of that shape."""
        text = _TextTower(vocabulary_size, self.words, self.dim, self.word_init)
        return _Towers(self._image_tower(item_shape), text)

    def _image_tower(self, shape: tuple[int, ...]) -> nn.Module:
        pixels = len(shape) == 3 and shape[0] == 3
        if pixels == (self.image == "linear"):
            need = "features, (d,) or (regions, d)" if self.image == "linear" else "pixels, (3, H, W)"
            raise InputError(f"image={self.image} must be given {need}; the data set has items of shape {shape}")
        if self.image == "linear":
            return _LinearTower(shape[-1], self.dim, self.pool)
        if self.image == "cnn-small":
            return _SmallCNN(shape[1:], self.width, self.grid, self.dim, self.centre)
        return _ResnetTower(self.image, self.weights, self.finetune, self.dim)


class _Towers(Encoder):
    def __init__(self, image: nn.Module, text: nn.Module) -> None:
        super().__init__()
        self.image = image
        self.text = text

    def encode_images(self, images: Tensor) -> Side:
        return Side(normalise(self.image(images).float()))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> Side:
        return Side(normalise(self.text(ids, lengths).float()))


class _SmallCNN(nn.Module):
    """Four 3x3 convolutions of stride 2 with batch norm; the last map is averaged over grid x grid
    cells. A batch norm on the output takes away what all images share, which holds similarities together at first."""

    def __init__(self, size: tuple[int, ...], width: int, grid: int, dim: int, centre: bool) -> None:
        super().__init__()
        if min(size) < 16:
            raise InputError(f"cnn-small must be given pictures of at least 16 x 16; got {size[0]} x {size[1]}")
        sizes = [3, width, 2 * width, 4 * width, 4 * width]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            convolution = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        self.features = nn.Sequential(*layers, _Grid(grid), nn.Flatten())
        self.fc = _xavier(nn.Linear(sizes[-1] * grid**2, dim))
        self.bn = nn.BatchNorm1d(dim) if centre else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        pixels = _scaled(images).contiguous(memory_format=torch.channels_last)
        return self.bn(self.fc(self.features(pixels)))  # type: ignore[no-any-return]


class _Grid(nn.Module):
    """Average over an n x n grid of cells, whatever the size of the map."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, maps: Tensor) -> Tensor:
        if maps.shape[-2:] == (self.n, self.n):
            return maps
        if maps.shape[-1] % self.n == 0 and maps.shape[-2] % self.n == 0:
            step = (maps.shape[-2] // self.n, maps.shape[-1] // self.n)
            return nn.functional.avg_pool2d(maps, step)
        return nn.functional.interpolate(maps, (self.n, self.n), mode="bilinear", align_corners=False)


class _LinearTower(nn.Module):
    def __init__(self, width: int, dim: int, pool: str) -> None:
        super().__init__()
        self.fc = _xavier(nn.Linear(width, dim))
        self.pool = pool

    def forward(self, features: Tensor) -> Tensor:
        mapped: Tensor = self.fc(features.float())
        if mapped.ndim == 2:
            return mapped
        return mapped.amax(1) if self.pool == "max" else mapped.mean(1)


class _ResnetTower(nn.Module):
    """A residual network, frozen (then always in eval mode) or fine-tuned, and a linear map on its pooled vector."""

    def __init__(self, name: str, weights: Path | None, finetune: bool, dim: int) -> None:
        super().__init__()
        self.cnn = Resnet(DEPTHS[name], weights)
        self.finetune = finetune
        self.cnn.requires_grad_(finetune)
        self.fc = _xavier(nn.Linear(self.cnn.width, dim))

    def train(self, mode: bool = True) -> _ResnetTower:
        super().train(mode)
        self.cnn.train(mode and self.finetune)
        return self

    def forward(self, images: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.finetune):
            pooled = normalise(self.cnn(_scaled(images)))
        return self.fc(pooled)  # type: ignore[no-any-return]


class _TextTower(nn.Module):
    def __init__(self, vocabulary_size: int, words: int, dim: int, word_init: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, words)
        nn.init.uniform_(self.embed.weight, -word_init, word_init)
        self.rnn = nn.GRU(words, dim, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.rnn(self.embed(ids))
        last = (lengths - 1).to(states.device)[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, last).squeeze(1)  # type: ignore[no-any-return]


def _scaled(images: Tensor) -> Tensor:
    """uint8 pixels -> ImageNet-normalised floats."""
    if images.dtype == torch.uint8:
        images = images.float() / 255
    mean = images.new_tensor([0.485, 0.456, 0.406])[:, None, None]
    deviation = images.new_tensor([0.229, 0.224, 0.225])[:, None, None]
    return (images - mean) / deviation


def _xavier(layer: nn.Linear) -> nn.Linear:
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
