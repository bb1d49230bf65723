"""What a backbone is: it extracts features of pictures, and has options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Pixels = npt.NDArray[Any]  # (n, 3, H, W) uint8
Features = npt.NDArray[np.float32]  # (n, R, d) or (n, d)
Extract = Callable[[Pixels], Features]
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of each channel


@runtime_checkable
class Backbone(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def identity(self) -> str:
        """Options and a fingerprint of the weights; backbones of equal identity extract equal features."""

    def open(self, device: str) -> Extract:
        """Load the backbone and return the function that extracts features.

        Raises InputError when it cannot be loaded.
        """


def normalise_pixels(pixels: Pixels, mean: tuple[float, ...], deviation: tuple[float, ...], device: str) -> Tensor:
    """Return (x / 255 - mean) / deviation of each channel, float32 on the device."""
    scaled = torch.from_numpy(np.ascontiguousarray(pixels)).to(device).float() / 255
    shift, scale = (scaled.new_tensor(values)[:, None, None] for values in (mean, deviation))
    return (scaled - shift) / scale


def to_regions(states: Tensor) -> Features:
    """Return hidden states as rows of regions: tokens (n, R, d) unchanged, maps (n, d, h, w) as (n, h*w, d)."""
    rows = states.flatten(2).transpose(1, 2) if states.ndim == 4 else states
    return np.ascontiguousarray(rows.float().cpu().numpy())
