"""How far above the query's positive does a model put the candidate?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class Difference(ModelSignal):
    """value = s − s₊, s₊ the similarity of the query's best positive; 0.1 is the threshold of Qwen3's embeddings.

    Source: Zhang et al. 2025 (Qwen3 Embedding); `--mask above`.
    """

    because: ClassVar[str] = "the model puts it near or above the positive"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        return model.similarity(pairs) - model.positive(pairs)
