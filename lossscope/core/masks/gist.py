"""Leave out negatives that a guide, another model, finds more similar than the positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from lossscope.errors import InputError

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class Gist:
    """hidden = g > g₊ − margin, or g > g₊ − margin |g₊|: g the guide's similarity, g₊ that of the best positive.

    The guide is a source of the same items, `--guide SOURCE`. Raises InputError for a margin below 0.
    Source: Solatorio 2024 (GISTEmbed); margins as in sentence-transformers.
    """

    margin: float = 0.0  # how far below the positive's a negative's similarity must stay
    strategy: Literal["absolute", "relative"] = "absolute"  # of the margin
    needs: ClassVar[Needs] = "guide"

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be at least 0; got {self.margin}")

    def hidden(self, rows: MaskInputs) -> Tensor:
        assert rows.guide is not None
        positive = rows.of_positive(rows.guide)
        margin = self.margin if self.strategy == "absolute" else self.margin * positive.abs()
        return rows.guide > positive - margin
