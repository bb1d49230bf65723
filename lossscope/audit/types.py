"""Define the types of an audit: pairs of rows, states of a score, groups of signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from lossscope.core.types import Rows

Floats = npt.NDArray[np.float32]
State = Literal["calibrated", "transferred", "ranked only"]
"""A score is a probability by labels of the data, a probability by weights of similar data, or only an order."""
Group = Literal["texts", "embeddings", "copies", "own"]  # what a signal reads; `own`: it is from a user's file


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of a query, a row of the first side, and a candidate, a row of the second."""

    left: Rows  # (n,)
    right: Rows  # (n,)

    def __len__(self) -> int:
        return len(self.left)

    def part(self, start: int, stop: int) -> PairRows:
        """Return the pairs from `start` to before `stop`."""
        return PairRows(self.left[start:stop], self.right[start:stop])
