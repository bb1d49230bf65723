"""Is the query like the item that the candidate belongs to, under a model?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class QueryNeighbours(ModelSignal):
    """value = max over the items v whose positive is the candidate of cos(query, v), of a model's embeddings."""

    because: ClassVar[str] = "the model finds the query similar to its own item"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        return model.nearest_query(pairs)
