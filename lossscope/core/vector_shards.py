"""Vectors of unit length from shards of rows: some of them, or all, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.io.row_shards import RowShards

from .types import Rows
from .unit_vectors import unit_rows


@dataclass(frozen=True)
class VectorShards:
    """(N, d) vectors of one side, of unit length, as `unit_rows` makes them when they are read."""

    rows: RowShards
    what: str  # name in messages
    dtype: torch.dtype = torch.float32  # float64 where a side has it
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device) -> VectorShards:
        """Return the same vectors, read to `device`."""
        return replace(self, device=device)

    def take(self, rows: Rows) -> Tensor:
        """Return the vectors (n, d) of some rows, in any order; a row may come twice."""
        wanted, position = np.unique(rows, return_inverse=True)
        return self._unit(self.rows.take(wanted), wanted).index_select(0, torch.from_numpy(position).to(self.device))

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Tensor]]:
        """Yield (first row, vectors) of a range of rows within one shard."""
        for first, block in self.rows.blocks(start, stop):
            yield first, self._unit(block, np.arange(first, first + len(block)))

    def all(self) -> Tensor:
        """Return all vectors, (N, d), in memory."""
        ranges = self.rows.parts(len(self.rows) or 1)
        return torch.cat([block for start, stop in ranges for _, block in self.blocks(start, stop)])

    def _unit(self, numbers: npt.NDArray[Any], rows: Rows) -> Tensor:
        """Return rows of unit length; errors name them by their rows in the set, which are `rows`."""
        wide = numbers.dtype.itemsize > 4
        x = torch.from_numpy(np.require(numbers, np.float64 if wide else np.float32, ["W", "C"]))
        vectors, _ = unit_rows(x, self.what, rows=rows)
        return vectors.to(self.device, self.dtype)
