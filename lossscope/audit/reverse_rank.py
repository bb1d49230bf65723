"""How near the top of the candidate's queries is the query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class ReverseRank(ModelSignal):
    """value = −log2(1 + number of queries above it), at most the default length of the search's lists."""

    because: ClassVar[str] = "the query is near the top of its queries"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        rank: Floats = -np.log2(1 + model.rank_of_queries(pairs))
        return rank
