"""How near the top of the query's candidates is it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class Rank(ModelSignal):
    """value = −log2(1 + number of candidates above it), at most the default length of the search's lists."""

    because: ClassVar[str] = "it is near the top of the query's candidates"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        rank: Floats = -np.log2(1 + model.rank_of_candidates(pairs))
        return rank
