"""Random augmentations of a batch of pictures, and the two scalings of pixels that image towers read.

Pictures are (n, 3, H, W) uint8. All random numbers come from torch's global generator on the CPU, so a seed gives the
same augmentations on every device. Resizing is bilinear with antialiasing, as PIL's.
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
    """Crop a box of random area and random width : height (log-uniform) from each picture and resize it to size².

    Ten boxes are drawn; the first that fits is taken, else the largest centred box within the range of ratios.

    Args:
        images: (n, 3, H, W).
        size: side of the result in pixels.
        area: range of the box's share of the picture's area.
        ratio: range of width : height.
    """
    height, width = images.shape[-2:]
    boxes = [_random_box(height, width, area, ratio) for _ in range(len(images))]
    return _crop_and_resize(images, boxes, (size, size))


def random_crop(images: Tensor, least: float = 0.6, most: float = 1.0) -> Tensor:
    """Crop a box from each picture, both sides u times the picture's, u ~ U(least, most); resize it to the whole."""
    height, width = images.shape[-2:]
    shares = torch.empty(len(images)).uniform_(least, most).tolist()
    sides = [(max(1, int(height * u)), max(1, int(width * u))) for u in shares]
    boxes = [(_random_up_to(height - h), _random_up_to(width - w), h, w) for h, w in sides]
    return _crop_and_resize(images, boxes, (height, width))


def centre_crop(images: Tensor, size: int) -> Tensor:
    """Return the size x size pixels in the middle. Raises InputError when pictures are smaller."""
    height, width = images.shape[-2:]
    if min(height, width) < size:
        raise InputError(f"pictures must be at least {size} x {size} for this crop; got {height} x {width}")
    top, left = round((height - size) / 2), round((width - size) / 2)
    return images[..., top : top + size, left : left + size]


def augment_or_crop(images: Tensor, size: int, training: bool) -> Tensor:
    """Return a randomly flipped random resized crop in training, else the middle; size 0 returns the whole picture."""
    if not size:
        return images
    return random_flip(random_resized_crop(images, size)) if training else centre_crop(images, size)


def random_flip(images: Tensor, probability: float = 0.5) -> Tensor:
    """Flip each picture left to right with probability `share`."""
    flipped = (torch.rand(len(images)) < probability).to(images.device)
    return torch.where(flipped[:, None, None, None], images.flip(-1), images)


def normalise_imagenet(images: Tensor) -> Tensor:
    """Return uint8 pixels / 255 (floats must be in 0..1), minus ImageNet's mean, over its standard deviation."""
    if images.dtype == torch.uint8:
        images = images.float() / 255
    mean = images.new_tensor(IMAGENET_MEAN)[:, None, None]
    return (images - mean) / images.new_tensor(IMAGENET_DEVIATION)[:, None, None]


def normalise_detector(images: Tensor) -> Tensor:
    """Return uint8 RGB pixels (floats must be in 0..1) as floats in BGR order, 0..255, minus the detector's means.

    Source: Anderson et al. 2018.
    """
    pixels = images.flip(1).float()
    pixels = pixels if images.dtype == torch.uint8 else pixels * 255
    return pixels - pixels.new_tensor(DETECTOR_MEAN)[:, None, None]


def _random_box(
    height: int, width: int, area: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a box."""
    areas = height * width * torch.empty(_TRIES).uniform_(*area)
    ratios = torch.empty(_TRIES).uniform_(math.log(ratio[0]), math.log(ratio[1])).exp()
    for w, h in zip((areas * ratios).sqrt().round().tolist(), (areas / ratios).sqrt().round().tolist(), strict=True):
        if 0 < w <= width and 0 < h <= height:
            return _random_up_to(height - int(h)), _random_up_to(width - int(w)), int(h), int(w)
    h, w = min(height, round(width / ratio[0])), min(width, round(height * ratio[1]))
    return (height - h) // 2, (width - w) // 2, h, w


def _crop_and_resize(images: Tensor, boxes: list[tuple[int, int, int, int]], size: tuple[int, int]) -> Tensor:
    """Return the box of each picture, resized."""
    views = [
        _resize(image[None, :, t : t + h, x : x + w], size) for image, (t, x, h, w) in zip(images, boxes, strict=True)
    ]
    return torch.cat(views)


def _resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    if images.shape[-2:] == size:
        return images
    resized = torch.nn.functional.interpolate(images.float(), size, mode="bilinear", antialias=True)
    return resized.round().clamp(0, 255).to(torch.uint8) if images.dtype == torch.uint8 else resized


def _random_up_to(most: int) -> int:
    """Return a random whole number from 0 to `most`, both included."""
    return int(torch.randint(most + 1, ()))
