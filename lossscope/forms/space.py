"""Room for tiles, kept between them: to ask the system for new memory costs as much as filling it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Space:
    """Contiguous buffers by name, grown to the largest tile met; what a buffer held before is overwritten."""

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}
        self._shared: tuple[float, float] | None = None

    def next_tile(self) -> None:
        """What was shared between the directions of a tile is of no use for another one."""
        self._shared = None

    def exponentials(self, tile: Tensor, scale: float, top: float) -> tuple[Tensor, Tensor]:
        """exp(scale (s − top)) and its square, (r, w) each, made once for both directions of a tile."""
        E, square = self.like(tile, "shared"), self.like(tile, "square")
        if self._shared != (scale, top):
            torch.sub(tile, top, out=E).mul_(scale).exp_()
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

    def truth(self, tile: Tensor) -> Tensor:
        """A bool tensor of the tile's shape."""
        return self.room("truth", tuple(tile.shape), torch.bool, tile.device)
