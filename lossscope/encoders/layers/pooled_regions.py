"""The image towers of VSE-infinity: detected regions, or cells of a convolutional map, pooled by GPO."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .gpo import GPO
from .grid_backbone import Backbone
from .image_augmentation import normalise_detector, normalise_imagenet, random_crop, random_flip
from .initialisation import init_xavier
from .size_augmentation import keep_cells, keep_regions, pack


class PooledRegions(nn.Module):
    """GPO of fc(f) + MLP(f) over regions f, (n, R, d) -> (n, dim).

    Args:
        width: of a region.
        dim: joint width.
        drop: share of regions that are dropped in training.
        ignore_padding: whether the batch norm of the MLP ignores the zeros behind the regions of items with fewer.
    """

    def __init__(self, width: int, dim: int, drop: float, ignore_padding: bool) -> None:
        super().__init__()
        self.fc = init_xavier(nn.Linear(width, dim))
        self.mlp = _Mlp(width, dim // 2, dim)
        self.gpool = GPO()
        self.drop, self.ignore_padding = drop, ignore_padding

    def forward(self, regions: Tensor) -> Tensor:
        regions, lengths = regions.float(), _full_lengths(regions)
        if self.training and self.drop:
            regions, lengths = pack(regions, keep_regions(_all_present(regions), self.drop))
        pooled: Tensor = self.gpool(self.fc(regions) + self._map_regions(regions, lengths), lengths)
        return pooled

    def _map_regions(self, regions: Tensor, lengths: Tensor) -> Tensor:
        """Return the MLP of each region."""
        present = torch.arange(regions.shape[1]) < lengths[:, None]
        if bool(present.all()) or not self.ignore_padding:
            return self.mlp(regions.flatten(0, 1)).view(*regions.shape[:2], -1)  # type: ignore[no-any-return]
        present = present.to(regions.device)
        mapped: Tensor = self.mlp(regions[present])
        return mapped.new_zeros(*present.shape, mapped.shape[1]).masked_scatter(present[:, :, None], mapped)


class _Mlp(nn.Module):
    """layers.1(relu(bns.0(layers.0(x)))); bns.1 is never applied: it exists for its name in files."""

    def __init__(self, width: int, hidden: int, dim: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, hidden), nn.Linear(hidden, dim)])
        self.bns = nn.ModuleList([nn.BatchNorm1d(hidden), nn.BatchNorm1d(dim)])
        self.bns[1].requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[1](self.bns[0](self.layers[0](x)).relu())  # type: ignore[no-any-return]


class PooledGrid(nn.Module):
    """GPO of a linear map of the cells of a backbone's last map, (n, 3, H, W) uint8 pixels -> (n, dim).

    In training: a crop of both sides by u ~ U(0.6, 1) resized back, flipped half the time, and cells dropped.
    """

    def __init__(self, backbone: Backbone, dim: int, drop: float) -> None:
        super().__init__()
        self.backbone = backbone
        self.image_encoder = nn.Module()
        self.image_encoder.fc = init_xavier(nn.Linear(backbone.width, dim))
        self.image_encoder.gpool = GPO()
        self.drop = drop

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            images = random_flip(random_crop(images))
        cells = self.backbone(normalise_detector(images) if self.backbone.detector else normalise_imagenet(images))
        lengths = _full_lengths(cells)
        if self.training and self.drop:
            cells, lengths = pack(cells, keep_cells(_all_present(cells), self.drop))
        mapped = self.image_encoder.get_submodule("fc")(cells)
        return self.image_encoder.get_submodule("gpool")(mapped, lengths)  # type: ignore[no-any-return]


def _all_present(sets: Tensor) -> Tensor:
    return torch.ones(sets.shape[:2], dtype=torch.bool, device=sets.device)


def _full_lengths(sets: Tensor) -> Tensor:
    return torch.full((len(sets),), sets.shape[1])
