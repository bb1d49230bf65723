"""The towers of VSE++ and its descendants: pictures, features or captions to one vector each."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.errors import InputError

from .image_augmentation import normalise_imagenet
from .initialisation import build_embedding, init_xavier

BatchNorms = Literal["frozen", "ecir", "original"]


class SmallCNN(nn.Module):
    """Four 3x3 convolutions of stride 2 with batch norm; the last map is averaged over grid x grid cells.

    A batch norm on the output removes what all images share, which makes all similarities alike at first.

    Args:
        size: height and width of the pictures, at least 16 x 16.
        width: channels of the first convolution.
        grid: cells along each side.
        dim: joint width.
        centre: use that batch norm.
    """

    def __init__(self, size: tuple[int, ...], width: int, grid: int, dim: int, centre: bool) -> None:
        super().__init__()
        if min(size) < 16:
            raise InputError(f"cnn-small must be given pictures of at least 16 x 16; got {size[0]} x {size[1]}")
        sizes = [3, width, 2 * width, 4 * width, 4 * width]
        layers: list[nn.Module] = []
        for channels_in, channels_out in pairwise(sizes):
            convolution = nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(channels_out), nn.ReLU()]
        self.features = nn.Sequential(*layers, GridAverage(grid), nn.Flatten())
        self.fc = init_xavier(nn.Linear(sizes[-1] * grid**2, dim))
        self.bn = nn.BatchNorm1d(dim) if centre else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        pixels = normalise_imagenet(images).contiguous(memory_format=torch.channels_last)
        return self.bn(self.fc(self.features(pixels)))  # type: ignore[no-any-return]


class GridAverage(nn.Module):
    """Average over an n x n grid of cells, for maps of any size."""

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


class LinearTower(nn.Module):
    """W f + b of a precomputed vector (n, d), or of each region (n, R, d) and then their maximum or mean."""

    def __init__(self, width: int, dim: int, pool: str, unit_input: bool) -> None:
        super().__init__()
        self.fc = init_xavier(nn.Linear(width, dim))
        self.pool = pool
        self.unit_input = unit_input

    def forward(self, features: Tensor) -> Tensor:
        features = features.float()
        mapped: Tensor = self.fc(normalise(features) if self.unit_input else features)
        if mapped.ndim == 2:
            return mapped
        return mapped.amax(1) if self.pool == "max" else mapped.mean(1)


class CnnTower(nn.Module):
    """fc(norm(cnn(pixels))), with the network frozen or fine-tuned.

    Args:
        cnn: the network, pixels -> (n, width).
        width: of its output.
        dim: joint width.
        finetune: train the network too.
        batch_norms: mode of the network's layers that differ between training and eval (batch norm, dropout) while the
            rest trains. `frozen`: eval, unless fine-tuned. `ecir`: training. `original`: training up to a training step
            whose number, counted from 1 since the tower was built, is a multiple of 500 (where the original validated
            and did not switch back), and eval from there to the evaluation after the epoch, which is when pictures are
            next encoded in eval mode. Only with `original` the state dict has `steps` and `leaked`, so that a run
            resumed within an epoch continues in the same mode.
    """

    LEAK_EVERY = 500

    steps: Tensor
    leaked: Tensor

    def __init__(self, cnn: nn.Module, width: int, dim: int, finetune: bool, batch_norms: BatchNorms) -> None:
        super().__init__()
        self.cnn = cnn
        self.finetune = finetune
        self.batch_norms = batch_norms
        self.cnn.requires_grad_(finetune)
        self.fc = init_xavier(nn.Linear(width, dim))
        counts = batch_norms == "original"
        self.register_buffer("steps", torch.zeros((), dtype=torch.long), persistent=counts)
        self.register_buffer("leaked", torch.zeros((), dtype=torch.bool), persistent=counts)

    @staticmethod
    def initial_counters(prefix: str) -> dict[str, Tensor]:
        """Return the state with batch_norms=original that released files lack: no steps, no leak."""
        return {f"{prefix}steps": torch.tensor(0), f"{prefix}leaked": torch.tensor(False)}

    def train(self, mode: bool = True) -> CnnTower:
        super().train(mode)
        counts = self.batch_norms == "original"
        self.cnn.train(mode and (self.finetune or self.batch_norms != "frozen") and not (counts and bool(self.leaked)))
        return self

    def forward(self, images: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.finetune):
            pooled = normalise(self.cnn(normalise_imagenet(images)))
        if self.batch_norms == "original":
            self._count()
        return self.fc(pooled)  # type: ignore[no-any-return]

    def _count(self) -> None:
        if not self.training:
            self.leaked.fill_(False)
            return
        self.steps += 1
        if int(self.steps) % self.LEAK_EVERY == 0:
            self.leaked.fill_(True)
            self.cnn.eval()


class GruTower(nn.Module):
    """GRU(words) at the last token of each caption: (n, L) ids, (n,) lengths -> (n, dim).

    Word vectors start uniform in ±word_init; of several layers the last one's state counts. Source: Faghri et al. 2018.
    """

    def __init__(self, vocabulary_size: int, words: int, dim: int, word_init: float, layers: int = 1) -> None:
        super().__init__()
        self.embed = build_embedding(vocabulary_size, words, word_init)
        self.rnn = nn.GRU(words, dim, layers, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.rnn(self.embed(ids))
        last = (lengths - 1).to(states.device)[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, last).squeeze(1)  # type: ignore[no-any-return]
