"""How many queries of the batch in which a loss broke have no positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class PositiveCounts:
    """Queries of the last finite batch of a running loop, after which its numbers were not finite."""

    absent: ClassVar[str] = "it is not a batch of a running loop"
    need: ClassVar[str] = "a running loop, whose labels, mask or pairs are watched"
    without: int  # queries that have no positive
    queries: int

    @classmethod
    def of_positives(cls, positives: Tensor) -> PositiveCounts:
        """Count them in (q, c) bool, the positives of each query."""
        with torch.no_grad():
            return cls(int((~positives.any(1)).sum()), len(positives))
