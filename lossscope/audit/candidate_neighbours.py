"""Is the candidate like a positive of the query, under a model?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class CandidateNeighbours(ModelSignal):
    """value = max over the query's positives t of cos(candidate, t), of a model's embeddings of the second side."""

    because: ClassVar[str] = "the model finds it similar to a positive of the query"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        return model.nearest_sibling(pairs)
