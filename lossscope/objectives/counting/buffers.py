"""Memory for tiles, reused between them: allocating new memory costs as much time as filling it."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from lossscope.core.row_ops import exp_, row_dot

from .large_entries import BLOCK, EntrySearch, LargeEntries, block_maxima


class Buffers:
    """Contiguous tensors by name, grown to the largest tile so far; a tensor overwrites the previous one of its name.

    After a call of `next_tile` for every tile, the two directions of the tile share what both need.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}
        self._ones: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}
        self._sharing = False
        self._shared: tuple[float, float] | None = None
        self._blocks: Tensor | None = None
        self._maxima: dict[int, Tensor] = {}
        self._range: tuple[float, float] | None = None

    def next_tile(self) -> None:
        """Discard what the two directions of the last tile shared."""
        self._sharing = True
        self._shared = self._blocks = self._range = None
        self._maxima = {}

    def block_maxima(self, tile: Tensor) -> Tensor:
        """Return the maxima of the blocks of a tile on a CPU, computed once for both directions."""
        if self._blocks is None or not self._sharing:
            shape = (-(-len(tile) // BLOCK), tile.shape[1])
            self._blocks = block_maxima(tile, self.get("blocks", shape, tile.dtype, tile.device))
        return self._blocks

    def maxima(self, tile: Tensor, dim: int) -> Tensor:
        """Return the largest entry of each row (dim 1) or column (dim 0) of a tile, computed once for all that ask."""
        if dim not in self._maxima or not self._sharing:
            of_blocks = dim == 0 and tile.device.type == "cpu"
            self._maxima[dim] = (self.block_maxima(tile) if of_blocks else tile).amax(dim)
        return self._maxima[dim]

    def maxima_range(self, tile: Tensor) -> tuple[float, float]:
        """Return the largest and the smallest of the maxima of all rows and columns, computed once a tile."""
        if self._range is None or not self._sharing:
            maxima = [self.maxima(tile, dim) for dim in (1, 0)]
            smallest = [float(m.where(m > -torch.inf, torch.inf).amin()) for m in maxima]
            self._range = (float(maxima[0].amax()), min(0.0 if m == torch.inf else m for m in smallest))
        return self._range

    def exponentials(self, tile: Tensor, scale: float, reference: float) -> Tensor:
        """exp(scale (s − reference)), (r, w), computed once for both directions of a tile."""
        E = self.empty_like(tile, "shared")
        if self._shared != (scale, reference) or not self._sharing:
            exp_(torch.sub(tile, reference, out=E), scale)
            self._shared = (scale, reference)
        return E

    def at_least(self, tile: Tensor, bound: Tensor, dim: int, search: EntrySearch) -> LargeEntries | None:
        """Return the entries of a tile >= the bound of their query; None where they are not few, or not on a CPU.

        Args:
            tile: (r, w).
            bound: (r,) or (w,) of each query.
            dim: 1 where queries are its rows, 0 where they are its columns.
            search: for these bounds.
        """
        if tile.device.type != "cpu" or search.is_paused():
            return None
        return search.at_least(tile, self.block_maxima(tile), bound, dim)

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

    def sum_of_squares(self, tile: Tensor, dim: int) -> Tensor:
        """Return the sum of squares over a dimension, in one pass over it on a CPU."""
        if tile.device.type != "cpu":
            return self.sum(torch.mul(tile, tile, out=self.empty_like(tile, "square")), dim)
        if dim == 1:
            return row_dot(tile, tile)
        return torch.from_numpy(np.einsum("ij,ij->j", tile.numpy(), tile.numpy()))
