"""How similar are the two beyond their similarity to everything else?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, ModelSignal, PairRows
from .parts.model_view import ModelView


@dataclass(frozen=True)
class Density(ModelSignal):
    """value = 2 s − r(q) − r(c), r the mean similarity of an item with its 10 nearest of the other side.

    Source: Conneau et al. 2018 (cross-domain similarity local scaling).
    """

    because: ClassVar[str] = "the two are closer than their neighbourhoods suggest"

    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        densities = model.density_of_queries(pairs.left) + model.density_of_candidates(pairs.right)
        scaled: Floats = 2 * model.similarity(pairs) - densities
        return scaled
