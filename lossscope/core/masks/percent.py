"""Leave out negatives nearly as similar as the positive: s above 95 % of s₊."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.errors import InputError

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class Percent:
    """hidden = s > s₊ − (1 − share) |s₊|, s₊ the similarity of the best positive.

    For s₊ > 0 it is s > share · s₊. For s₊ < 0, share · s₊ would lie above the positive, so that the threshold is
    moved down by the absolute value (sentence-transformers pull request 3821). Raises InputError unless 0 < share <= 1.
    Source: Moreira et al. 2024 (NV-Retriever), TopK-PercPos with 95 %.
    """

    share: float = 0.95  # of the positive's similarity
    needs: ClassVar[Needs] = "similarities"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share must be in (0, 1]; got {self.share}")

    def hidden(self, rows: MaskInputs) -> Tensor:
        positive = rows.of_positive(rows.S)
        return positive - (1 - self.share) * positive.abs() < rows.S
