"""Memory for tiles, reused between them: allocating new memory costs as much time as filling it."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from lossscope.core.row_ops import exp_


class Buffers:
    """Contiguous tensors by name, grown to the largest tile so far; a tensor overwrites the previous one of its name.

    After a call of `next_tile` for every tile, the two directions of the tile share what both need.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}
        self._ones: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}
        self._sharing = False
        self._shared: tuple[float, float] | None = None
        self._maxima: tuple[float, float] | None = None

    def next_tile(self) -> None:
        """Discard what the two directions of the last tile shared."""
        self._sharing = True
        self._shared = self._maxima = None

    def maxima_range(self, tile: Tensor) -> tuple[float, float]:
        """Return the largest and the smallest of the maxima of all rows and columns, computed once a tile."""
        if self._maxima is None or not self._sharing:
            maxima = [tile.amax(1), tile.amax(0)]
            smallest = min(float(m[m > -torch.inf].min()) if bool((m > -torch.inf).any()) else 0.0 for m in maxima)
            self._maxima = (float(maxima[0].max()), smallest)
        return self._maxima

    def exponentials(self, tile: Tensor, scale: float, reference: float) -> tuple[Tensor, Tensor]:
        """exp(scale (s − reference)) and its square, (r, w) each, computed once for both directions of a tile."""
        E, square = self.empty_like(tile, "shared"), self.empty_like(tile, "square")
        if self._shared != (scale, reference) or not self._sharing:
            exp_(torch.sub(tile, reference, out=E), scale)
            torch.mul(E, E, out=square)
            self._shared = (scale, reference)
        return E, square

    def get(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return an uninitialised tensor of that name and shape."""
        key, size = (name, dtype, device), math.prod(shape)
        memory = self._memory.get(key)
        if memory is None or len(memory) < size:
            memory = self._memory[key] = torch.empty(size, dtype=dtype, device=device)
        return memory[:size].view(shape)

    def empty_like(self, tile: Tensor, name: str = "work") -> Tensor:
        """Return an uninitialised tensor of the tile's shape, type and device."""
        return self.get(name, tuple(tile.shape), tile.dtype, tile.device)

    def greater(self, tile: Tensor, cut: Tensor) -> Tensor:
        """(r, w) bool, tile > cut; numpy writes booleans three times as fast as torch on a CPU."""
        truth = self.get("truth", tuple(tile.shape), torch.bool, tile.device)
        if tile.device.type == "cpu":
            np.greater(tile.numpy(), cut.numpy(), out=truth.numpy())
            return truth
        return torch.gt(tile, cut, out=truth)

    def sum(self, tile: Tensor, dim: int) -> Tensor:
        """Return the sum over a dimension; on a CPU, over rows, a product with ones, which reads memory in order."""
        if dim == 1 or tile.device.type != "cpu":
            return tile.sum(dim)
        ones = self._ones.get((len(tile), tile.dtype, tile.device))
        if ones is None:
            ones = self._ones[len(tile), tile.dtype, tile.device] = tile.new_ones(1, len(tile))
        return (ones @ tile)[0]
