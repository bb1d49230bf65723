"""What makes features of pictures: a backbone with its options, opened for pictures of one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Pixels = npt.NDArray[Any]
Features = npt.NDArray[np.float32]
Extract = Callable[[Pixels], Features]
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@runtime_checkable
class Backbone(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def identity(self) -> str:
        """Its options and a fingerprint of its weights: features of equal identity are equal."""

    def open(self, device: str) -> Extract:
        """(n, 3, H, W) uint8 pixels -> (n, R, d) or (n, d) features. Raises InputError when it can not be opened."""


def normalised(pixels: Pixels, mean: tuple[float, ...], deviation: tuple[float, ...], device: str) -> Tensor:
    """(x / 255 - mean) / deviation of each channel, float32 on the device."""
    scaled = torch.from_numpy(np.ascontiguousarray(pixels)).to(device).float() / 255
    shift, scale = (scaled.new_tensor(values)[:, None, None] for values in (mean, deviation))
    return (scaled - shift) / scale


def regions(states: Tensor) -> Features:
    """Hidden states as rows of regions: (n, R, d) tokens as they are, (n, d, h, w) maps -> (n, h*w, d)."""
    rows = states.flatten(2).transpose(1, 2) if states.ndim == 4 else states
    return np.ascontiguousarray(rows.float().cpu().numpy())
