"""Leave out negatives that the model itself ranks far above the positive: s > s₊ + margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.errors import InputError

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class Above:
    """hidden = s > s₊ + margin, s₊ the similarity of the best positive.

    Of a single positive it is the rule of Qwen3's embeddings, which uses 0.1. Raises InputError for no finite margin.
    Source: Zhang et al. 2025 (Qwen3 Embedding), training objective.
    """

    margin: float = 0.1  # cosine above the positive's from which a negative is left out
    needs: ClassVar[Needs] = "similarities"

    def __post_init__(self) -> None:
        if not math.isfinite(self.margin):
            raise InputError(f"margin must be a finite cosine; got {self.margin}")

    def hidden(self, rows: MaskInputs) -> Tensor:
        return rows.of_positive(rows.S) + self.margin < rows.S
