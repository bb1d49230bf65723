"""Room for tiles, kept between them: to ask the system for new memory costs as much as filling it."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from lossscope.core.row_ops import exp_


class Buffers:
    """Contiguous buffers by name, grown to the largest tile met; what a buffer held before is overwritten.

    Who calls `next_tile` before every tile lets its two directions share what they both need.
    """

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}
        self._ones: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}
        self._sharing = False
        self._shared: tuple[float, float] | None = None
        self._extent: tuple[float, float] | None = None

    def next_tile(self) -> None:
        """Forget what the directions of the last tile shared."""
        self._sharing = True
        self._shared = self._extent = None

    def extent(self, tile: Tensor) -> tuple[float, float]:
        """The highest and the lowest of the maxima of all rows and columns of a tile, looked for once."""
        if self._extent is None or not self._sharing:
            tops = [tile.amax(1), tile.amax(0)]
            lowest = min(float(top[top > -torch.inf].min()) if bool((top > -torch.inf).any()) else 0.0 for top in tops)
            self._extent = (float(tops[0].max()), lowest)
        return self._extent

    def exponentials(self, tile: Tensor, scale: float, top: float) -> tuple[Tensor, Tensor]:
        """exp(scale (s − top)) and its square, (r, w) each, made once for both directions of a tile."""
        E, square = self.like(tile, "shared"), self.like(tile, "square")
        if self._shared != (scale, top) or not self._sharing:
            exp_(torch.sub(tile, top, out=E), scale)
            torch.mul(E, E, out=square)
            self._shared = (scale, top)
        return E, square

    def room(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor of that shape with anything in it."""
        key, size = (name, dtype, device), math.prod(shape)
        room = self._rooms.get(key)
        if room is None or len(room) < size:
            room = self._rooms[key] = torch.empty(size, dtype=dtype, device=device)
        return room[:size].view(shape)

    def like(self, tile: Tensor, name: str = "work") -> Tensor:
        """A tensor of the tile's shape, type and device."""
        return self.room(name, tuple(tile.shape), tile.dtype, tile.device)

    def above(self, tile: Tensor, cut: Tensor) -> Tensor:
        """(r, w) bool, tile > cut; numpy writes truth values three times as fast as torch on a CPU."""
        truth = self.room("truth", tuple(tile.shape), torch.bool, tile.device)
        if tile.device.type == "cpu":
            np.greater(tile.numpy(), cut.numpy(), out=truth.numpy())
            return truth
        return torch.gt(tile, cut, out=truth)

    def total(self, tile: Tensor, dim: int) -> Tensor:
        """Sum over a dimension; over rows by a product, which runs along the memory."""
        if dim == 1:
            return tile.sum(1)
        ones = self._ones.get((len(tile), tile.dtype, tile.device))
        if ones is None:
            ones = self._ones[len(tile), tile.dtype, tile.device] = tile.new_ones(1, len(tile))
        return (ones @ tile)[0]
