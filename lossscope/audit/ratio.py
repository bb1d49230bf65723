"""Which share of the positive's similarity does the candidate reach?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class Ratio(ModelSignal):
    """value = 1 + (s − s₊) / |s₊|, s₊ the similarity of the query's best positive; NV-Retriever's threshold is 0.95.

    The value is clipped to −10..10, as s₊ may be near 0.
    Source: Moreira et al. 2024 (NV-Retriever); `--mask percent`.
    """

    because: ClassVar[str] = "the model finds it nearly as similar as the positive"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        positive = model.positive(pairs)
        size = np.maximum(np.abs(positive), 1e-6)
        ratio: Floats = np.clip(1 + (model.similarity(pairs) - positive) / size, -10, 10)
        return ratio
