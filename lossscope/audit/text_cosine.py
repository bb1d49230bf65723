"""Does the candidate's text use the words of the query's own texts?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.text_products import best_sparse_product
from .parts.text_space import TextSpace


@dataclass(frozen=True)
class TextCosine(Signal):
    """value = max over the query's positives t of cos(candidate, t), of TF-IDF vectors of stems.

    Source: Salton & Buckley 1988 (TF-IDF); measured on the judgements of Hodosh et al. 2013.
    """

    because: ClassVar[str] = "its text uses the words of the query's own texts"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        space = material.part(TextSpace)
        return best_sparse_product(space.words, pairs.right, material.positives_of_queries[pairs.left])
