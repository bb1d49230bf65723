"""The similarities of a source that has nothing else, as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

_BLOCK = 1 << 12  # rows that are looked at together
_LARGEST_COSINE = 1.01  # of unit vectors, with the rounding of half precision


@dataclass(frozen=True)
class Matrix:
    """S (N, M), before anything refuses it."""

    S: Tensor

    @property
    def entries(self) -> int:
        """Number of entries."""
        return self.S.numel()

    @cached_property
    def not_finite(self) -> int:
        """Number of entries with NaN or infinity."""
        return sum(int((~block.isfinite()).sum()) for block in self._blocks)

    @property
    def first_not_finite(self) -> int:
        """Row of the first entry that is not finite."""
        return int((~self.S.isfinite()).any(1).nonzero()[0])

    @cached_property
    def beyond(self) -> float:
        """Share of the finite entries outside [−1, 1], beyond rounding."""
        outside = sum(int(((block.abs() > _LARGEST_COSINE) & block.isfinite()).sum()) for block in self._blocks)
        return outside / max(self.entries - self.not_finite, 1)

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of the finite entries."""
        return max(float(block.where(block.isfinite(), 0.0).abs().max()) for block in self._blocks)

    @property
    def _blocks(self) -> tuple[Tensor, ...]:
        return torch.split(self.S, _BLOCK)
