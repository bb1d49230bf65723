"""A rectangle of S in one direction: its rows are queries, its columns candidates, however it lies in memory.

One tile serves both directions: the second is its transpose, which is not copied. What both need is computed once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lossscope.core.row_ops import exp_, row_dot

from .large_entries import BLOCK, EntrySearch, LargeEntries, block_maxima


class Buffers:
    """Contiguous tensors by name, grown to the largest so far; a tensor overwrites the previous one of its name.

    Allocating new memory costs as much time as filling it.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}
        self._ones: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return an uninitialised tensor of that name and shape."""
        key, size = (name, dtype, device), math.prod(shape)
        memory = self._memory.get(key)
        if memory is None or len(memory) < size:
            memory = self._memory[key] = torch.empty(size, dtype=dtype, device=device)
        return memory[:size].view(shape)

    def empty_like(self, x: Tensor, name: str = "work") -> Tensor:
        """Return an uninitialised tensor of the same shape, type and device."""
        return self.get(name, tuple(x.shape), x.dtype, x.device)

    def ones(self, x: Tensor) -> Tensor:
        """(1, r) ones, for x (r, w)."""
        key = (len(x), x.dtype, x.device)
        if key not in self._ones:
            self._ones[key] = x.new_ones(1, len(x))
        return self._ones[key]


@dataclass(eq=False)
class Tile:
    """Similarities of some rows with some columns, in memory that the next tile may overwrite."""

    S: Tensor  # (r, w), −inf on entries that are not negatives
    rows: slice
    columns: slice
    buffers: Buffers = field(default_factory=Buffers)
    _blocks: Tensor | None = None
    _maxima: dict[int, Tensor] = field(default_factory=dict)
    _range: tuple[float, float] | None = None
    _exponent: tuple[float, float] | None = None  # of the exponentials in the buffer

    @property
    def both(self) -> tuple[Block, Block]:
        """Both directions: queries are its rows, and its columns."""
        return Block(self), Block(self, 0)

    @property
    def block_maxima(self) -> Tensor:
        """The maxima of pieces of columns, on a CPU, see `large_entries`."""
        if self._blocks is None:
            shape = (-(-len(self.S) // BLOCK), self.S.shape[1])
            self._blocks = block_maxima(self.S, self.buffers.get("blocks", shape, self.S.dtype, self.S.device))
        return self._blocks

    def maxima(self, dim: int) -> Tensor:
        """Return the largest entry of each row (dim 1) or column (dim 0)."""
        if dim not in self._maxima:
            of_blocks = dim == 0 and self.S.device.type == "cpu"
            self._maxima[dim] = (self.block_maxima if of_blocks else self.S).amax(dim)
        return self._maxima[dim]

    @property
    def maxima_range(self) -> tuple[float, float]:
        """The largest and the smallest of the maxima of all rows and columns."""
        if self._range is None:
            maxima = [self.maxima(dim) for dim in (1, 0)]
            smallest = [float(m.where(m > -torch.inf, torch.inf).amin()) for m in maxima]
            self._range = (float(maxima[0].amax()), min(0.0 if m == torch.inf else m for m in smallest))
        return self._range

    def exponentials(self, scale: float, reference: float) -> Tensor:
        """exp(scale (s − reference)), (r, w), computed once for both directions."""
        E = self.buffers.empty_like(self.S, "shared")
        if self._exponent != (scale, reference):
            exp_(torch.sub(self.S, reference, out=E), scale)
            self._exponent = (scale, reference)
        return E


@dataclass(frozen=True, eq=False)
class Block:
    """A tile in one direction.

    Matrices that its methods take and return lie in memory as the tile does: they are reduced by `sum` alone.
    """

    tile: Tile
    dim: int = 1  # along which candidates lie: 1 where queries are the rows of the tile, 0 where they are its columns

    @property
    def rows(self) -> slice:
        """The queries."""
        return self.tile.rows if self.dim == 1 else self.tile.columns

    @property
    def columns(self) -> slice:
        """The candidates."""
        return self.tile.columns if self.dim == 1 else self.tile.rows

    @property
    def S(self) -> Tensor:
        """Similarities, as they lie in memory."""
        return self.tile.S

    def of_queries(self, x: Tensor) -> Tensor:
        """Return a number of each query, (n,), so that it can be compared with S."""
        return x.unsqueeze(self.dim)

    def max(self) -> Tensor:
        """(n,) similarity of the hardest negative; −inf where there is none."""
        return self.tile.maxima(self.dim)

    def sum(self, x: Tensor) -> Tensor:
        """(n,) Σ over candidates; on a CPU over rows of memory a product with ones, which reads it in order."""
        if self.dim == 1 or x.device.type != "cpu":
            return x.sum(self.dim)
        return (self.tile.buffers.ones(x) @ x)[0]

    def sum_of_squares(self, x: Tensor) -> Tensor:
        """(n,) Σ x² over candidates, in one pass on a CPU."""
        if x.device.type != "cpu":
            return self.sum(torch.mul(x, x, out=self.tile.buffers.empty_like(x, "square")))
        if self.dim == 1:
            return row_dot(x, x)
        return torch.from_numpy(np.einsum("ij,ij->j", x.numpy(), x.numpy()))

    def work(self, name: str = "work") -> Tensor:
        """Return memory of the shape of S."""
        return self.tile.buffers.empty_like(self.S, name)

    def minus(self, x: Tensor) -> Tensor:
        """S less a number of each query, in `work`."""
        return torch.sub(self.S, self.of_queries(x), out=self.work())

    def above(self, cut: Tensor, name: str = "work") -> Tensor:
        """Return 1 where a negative is above the cut of its query, (n,), else 0, of the type of S."""
        return torch.gt(self.S, self.of_queries(cut), out=self.work(name))

    def below(self, cut: Tensor, name: str) -> Tensor:
        """Return 1 where an entry is below the cut of its query, (n,), else 0."""
        return torch.lt(self.S, self.of_queries(cut), out=self.work(name))

    def at_least(self, cut: Tensor) -> Tensor:
        """Return 1 where a negative is at or above the cut of its query, (n,), else 0."""
        return torch.ge(self.S, self.of_queries(cut), out=self.work())

    def exponentials(self, scale: float, reference: Tensor) -> Tensor:
        """exp(scale (s − reference)), reference (n,)."""
        return exp_(self.minus(reference), scale)

    def entries_above(self, cut: Tensor, search: EntrySearch) -> LargeEntries:
        """Return the entries above the cut of their query, (n,)."""
        if self.S.device.type == "cpu" and not search.is_paused():
            entries = search.at_least(self.S, self.tile.block_maxima, cut, self.dim)
            if entries is not None:
                return entries.above(cut)
        return self.entries_where(self.S, cut)

    def entries_where(self, x: Tensor, cut: Tensor) -> LargeEntries:
        """Return the entries of S where x is above the cut of its query, (n,)."""
        truth = self.tile.buffers.get("truth", tuple(x.shape), torch.bool, x.device)
        if x.device.type == "cpu":  # numpy writes booleans three times as fast as torch
            np.greater(x.numpy(), self.of_queries(cut).numpy(), out=truth.numpy())
        else:
            torch.gt(x, self.of_queries(cut), out=truth)
        return LargeEntries.where(truth, self.S, self.dim)

    def by_query(self, queries: Tensor) -> Tensor:
        """(k, candidates) rows of some of its queries, copied."""
        return self.S[queries] if self.dim == 1 else self.S[:, queries].T.contiguous()
