"""How similar does a model find query and candidate?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class Similarity(ModelSignal):
    """value = s."""

    because: ClassVar[str] = "the model finds them similar"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        return model.similarity(pairs)
