"""The stored similarities of a source without embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing, TooLittle
from lossscope.core.similarity import LARGEST_COSINE, LARGEST_SIMILARITY

from .patient import Patient
from .vectors import SCORES_PAIRS

_BLOCK = 1 << 12  # rows read together
_LEAST = 1e-30  # largest similarity, below which float32 loses digits of the others


@dataclass(frozen=True)
class Matrix:
    """S (N, M), before any check of its values."""

    S: Tensor
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, _: Patient, stored: SplitEmbeddings) -> Matrix:
        """Take S of the source. Raises Missing where it has embeddings, or scores pairs."""
        if stored.images is not None and stored.captions is not None:
            raise Missing("it has embeddings, whose similarities are cosines")
        if stored.similarity is None:
            raise Missing(SCORES_PAIRS)
        return cls(stored.similarity)

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
        outside = sum(int(((block.abs() > LARGEST_COSINE) & block.isfinite()).sum()) for block in self._blocks)
        return outside / max(self.entries - self.not_finite, 1)

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of the finite entries."""
        return max(float(block.where(block.isfinite(), 0.0).abs().max()) for block in self._blocks)

    def require_float32(self) -> None:
        """Raise TooLittle where similarities are too large or too small to be compared and weighed in float32."""
        if self.largest > LARGEST_SIMILARITY:
            raise TooLittle(
                f"its similarities reach {self.largest:.3g}, and lossscope computes no loss beyond "
                f"{LARGEST_SIMILARITY:g}; divide them by one number"
            )
        if 0 < self.largest < _LEAST:
            raise TooLittle(
                f"its largest similarity is {self.largest:.3g}, too small for float32; multiply them by one number"
            )

    @property
    def _blocks(self) -> tuple[Tensor, ...]:
        return torch.split(self.S, _BLOCK)
