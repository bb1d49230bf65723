"""The entries of a tile that reach the bound of their query: found by the maxima of blocks, where they are few.

Comparing every entry and looking for what is true takes two passes over a tile for each bound. The maxima of blocks,
16 rows of a column each, take one pass for both directions, and are the maxima of columns, too; then only the blocks
whose maximum reaches a bound are compared entry by entry. The entries are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

BLOCK = 16  # rows of a block, each has one column
_SHARE = 24  # at most 1 block in 24 may reach a bound: to compare more entry by entry takes as long as all of them
_MAX_PAUSE = 64  # at most 64 tiles are compared as a whole before blocks are tried again

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class LargeEntries:
    """Some entries of a tile, in any order."""

    queries: Tensor  # (k,) their rows or columns in the tile
    values: Tensor  # (k,)

    @classmethod
    def where(cls, chosen: Tensor, tile: Tensor, dim: int) -> LargeEntries:
        """Return the chosen entries of a tile, both (r, w); their queries are its rows (dim 1) or columns (dim 0)."""
        positions = _true_positions(chosen)
        width = tile.shape[1]
        queries = positions // width if dim == 1 else positions % width
        return cls(queries, tile.reshape(-1)[positions])

    def above(self, bound: Tensor) -> LargeEntries:
        """Return those above the bound of their query, (r,) or (w,)."""
        kept = self.values > bound[self.queries]
        return LargeEntries(self.queries[kept], self.values[kept])


def block_maxima(tile: Tensor, out: Tensor) -> Tensor:
    """Return the maxima of the blocks of a tile (r, w) on a CPU, (⌈r / 16⌉, w).

    Args:
        tile: (r, w).
        out: memory of the result.
    """
    S, maxima = tile.numpy(), out.numpy()
    for block in range(len(maxima)):
        np.max(S[BLOCK * block : BLOCK * (block + 1)], axis=0, out=maxima[block])
    return out


class EntrySearch:
    """Find the entries that reach the bounds of their queries, tile by tile, for one set of bounds.

    After a tile with too many of them the next tiles are not searched, as they will be alike.
    """

    def __init__(self) -> None:
        self._pause = 0  # tiles after the last one with too many entries
        self._pause_left = 0  # those of them that are still to come

    def is_paused(self) -> bool:
        """Return whether the next tile is not to be searched, and count it."""
        if self._pause_left:
            self._pause_left -= 1
            return True
        return False

    def at_least(self, tile: Tensor, maxima: Tensor, bound: Tensor, dim: int) -> LargeEntries | None:
        """Return the entries >= the bound of their query; None where too many blocks have one.

        Args:
            tile: (r, w) on a CPU.
            maxima: of its blocks.
            bound: (r,) or (w,) of each query.
            dim: 1 where queries are its rows, 0 where they are its columns.
        """
        low = bound.numpy() if dim == 0 else _smallest_of_blocks(bound.numpy(), len(maxima))
        blocks = np.flatnonzero(~(maxima.numpy() < low))  # NaN is no reason to skip a block
        if len(blocks) * _SHARE > maxima.numel():
            self._pause = self._pause_left = min(max(2 * self._pause, 1), _MAX_PAUSE)
            return None
        self._pause = 0
        positions = _positions_of_blocks(blocks, *tile.shape)
        width = tile.shape[1]
        values = tile.numpy().reshape(-1)[positions]
        queries = positions // width if dim == 1 else positions % width
        kept = values >= bound.numpy()[queries]
        return LargeEntries(*(torch.from_numpy(x[kept]) for x in (queries, values)))


def _true_positions(chosen: Tensor) -> Tensor:
    """Return the flat positions that are true; numpy is several times as fast as torch on a CPU."""
    if chosen.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(chosen.numpy()))
    return chosen.view(-1).nonzero()[:, 0]


def _smallest_of_blocks(bound: Floats, number: int) -> Floats:
    """(number, 1) smallest bound of the rows of each block."""
    padded = np.full(number * BLOCK, np.inf, dtype=bound.dtype)
    padded[: len(bound)] = bound
    smallest: Floats = padded.reshape(number, BLOCK).min(1)[:, None]
    return smallest


def _positions_of_blocks(blocks: npt.NDArray[np.intp], rows: int, width: int) -> npt.NDArray[np.intp]:
    """Return the flat positions of all entries of blocks, given by their flat positions among the blocks."""
    block, column = np.divmod(blocks, width)
    positions = (block * (BLOCK * width) + column + width * np.arange(BLOCK)[:, None]).reshape(-1)
    return positions if rows % BLOCK == 0 else positions[positions < rows * width]
