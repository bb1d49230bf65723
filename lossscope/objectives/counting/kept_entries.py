"""The cells of tiles that can still count, kept until the sums that decide are complete."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Thin = Callable[[Tensor, Tensor], Tensor]  # (which, values) -> bool, cells that can still count


class KeptEntries:
    """Cells by query and similarity, which `cut` thins out when they are too many.

    most: cells a query may keep on average. full: they were more, none is kept any longer.
    """

    def __init__(self, queries: int, most: int = 128) -> None:
        self.room = most * queries
        self.full = False
        self._which: list[Tensor] = []
        self._values: list[Tensor] = []
        self._held = self._settled = 0

    def take(self, tile: Tensor, chosen: Tensor, rows: slice, dim: int, thin: Thin) -> None:
        """Keep the chosen (r, w) cells."""
        places = _places(chosen)
        if len(places) == 0:
            return
        width = tile.shape[1]
        self._which.append((places // width if dim == 1 else places % width).int() + rows.start)
        self._values.append(tile.reshape(-1)[places])
        self._held += len(places)
        if self._held > self.room and self._held > 2 * self._settled:
            self._thin(thin)

    def _thin(self, thin: Thin) -> None:
        which, values = self.all(self._which[0].device)
        kept = thin(which, values)
        self._which, self._values = [which[kept]], [values[kept]]
        self._held = self._settled = len(self._which[0])
        if self._held > self.room:
            self.full = True
            self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._which, self._values, self._held = [], [], 0

    def all(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """(m,) queries, int32, and (m,) similarities."""
        if not self._which:
            return torch.zeros(0, dtype=torch.int32, device=device), torch.zeros(0, device=device)
        return torch.cat(self._which), torch.cat(self._values)

    def put(self, which: Tensor, values: Tensor) -> None:
        """Hold these instead."""
        self._which, self._values, self._held = [which], [values], len(which)


def _places(chosen: Tensor) -> Tensor:
    """Flat places that are true; numpy's search is several times as fast as torch's on a CPU."""
    if chosen.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(chosen.numpy()))
    return chosen.view(-1).nonzero()[:, 0]
