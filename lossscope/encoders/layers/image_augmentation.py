"""Random views of a batch of pictures, and the two scales that image towers read pixels in.

Pictures are (n, 3, H, W) uint8; what is random comes from torch's global generator, drawn on the CPU, so one seed
gives the same views on every device. Resizing is bilinear and averages when it shrinks, as PIL's does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lossscope.errors import InputError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_DEVIATION = (0.229, 0.224, 0.225)
DETECTOR_MEAN = (102.9801, 115.9465, 122.7717)
_TRIES = 10


def random_resized_crop(
    images: Tensor, size: int, area: tuple[float, float] = (0.08, 1.0), ratio: tuple[float, float] = (3 / 4, 4 / 3)
) -> Tensor:
    """Per picture a box of a random share of the area and a random width : height (log-uniform), resized to size².

    Ten boxes are drawn; the first that fits counts, else the largest centred box of a ratio allowed.
    """
    height, width = images.shape[-2:]
    boxes = [_box(height, width, area, ratio) for _ in range(len(images))]
    return _views(images, boxes, (size, size))


def random_crop(images: Tensor, least: float = 0.6, most: float = 1.0) -> Tensor:
    """Per picture a box whose sides are both u times the picture's, u ~ U(least, most), resized to the whole."""
    height, width = images.shape[-2:]
    shares = torch.empty(len(images)).uniform_(least, most).tolist()
    sides = [(max(1, int(height * u)), max(1, int(width * u))) for u in shares]
    boxes = [(_below(height - h), _below(width - w), h, w) for h, w in sides]
    return _views(images, boxes, (height, width))


def centre_crop(images: Tensor, size: int) -> Tensor:
    """The size x size pixels in the middle. Raises InputError when pictures are smaller."""
    height, width = images.shape[-2:]
    if min(height, width) < size:
        raise InputError(f"pictures must be at least {size} x {size} for this crop; got {height} x {width}")
    top, left = round((height - size) / 2), round((width - size) / 2)
    return images[..., top : top + size, left : left + size]


def view(images: Tensor, size: int, training: bool) -> Tensor:
    """A random resized crop of `size`, mirrored half the time, in training; else the middle. 0: the whole picture."""
    if not size:
        return images
    return flip(random_resized_crop(images, size)) if training else centre_crop(images, size)


def flip(images: Tensor, share: float = 0.5) -> Tensor:
    """Each picture mirrored left to right with probability `share`."""
    mirrored = (torch.rand(len(images)) < share).to(images.device)
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


def imagenet_scaled(images: Tensor) -> Tensor:
    """uint8 pixels / 255 (floats are taken as being in 0..1), minus ImageNet's mean, over its deviation."""
    if images.dtype == torch.uint8:
        images = images.float() / 255
    mean = images.new_tensor(IMAGENET_MEAN)[:, None, None]
    return (images - mean) / images.new_tensor(IMAGENET_DEVIATION)[:, None, None]


def detector_scaled(images: Tensor) -> Tensor:
    """uint8 RGB pixels -> floats in BGR order, 0..255, minus the detector's means (Anderson et al. 2018)."""
    if images.dtype != torch.uint8:
        raise InputError(f"pixels for the detector's backbone must be uint8; got {images.dtype}")
    return images.flip(1).float() - images.new_tensor(DETECTOR_MEAN, dtype=torch.float32)[:, None, None]


def _box(height: int, width: int, area: tuple[float, float], ratio: tuple[float, float]) -> tuple[int, int, int, int]:
    areas = height * width * torch.empty(_TRIES).uniform_(*area)
    ratios = torch.empty(_TRIES).uniform_(math.log(ratio[0]), math.log(ratio[1])).exp()
    for w, h in zip((areas * ratios).sqrt().round().tolist(), (areas / ratios).sqrt().round().tolist(), strict=True):
        if 0 < w <= width and 0 < h <= height:
            return _below(height - int(h)), _below(width - int(w)), int(h), int(w)
    h, w = min(height, round(width / ratio[0])), min(width, round(height * ratio[1]))
    return (height - h) // 2, (width - w) // 2, h, w


def _views(images: Tensor, boxes: list[tuple[int, int, int, int]], size: tuple[int, int]) -> Tensor:
    views = [
        _resized(image[None, :, t : t + h, x : x + w], size) for image, (t, x, h, w) in zip(images, boxes, strict=True)
    ]
    return torch.cat(views)


def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    if images.shape[-2:] == size:
        return images
    found = torch.nn.functional.interpolate(images.float(), size, mode="bilinear", antialias=True)
    return found.round().clamp(0, 255).to(torch.uint8) if images.dtype == torch.uint8 else found


def _below(most: int) -> int:
    """A random whole number from 0 to `most`, both included."""
    return int(torch.randint(most + 1, ()))
