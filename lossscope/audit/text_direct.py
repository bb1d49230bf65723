"""Does the candidate's text use the words of the query's text?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, Group, Missing, PairRows, Signal
from .parts.material import Material
from .parts.text_products import sparse_product
from .parts.text_space import TextSpace


@dataclass(frozen=True)
class TextDirect(Signal):
    """value = cos(query, candidate) of TF-IDF vectors of stems, if both sides are texts."""

    because: ClassVar[str] = "its text uses the words of the query"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        space = material.part(TextSpace)
        if space.first_words is None:
            raise Missing("its first side has no texts")
        return sparse_product(space.first_words, space.words, pairs.left, pairs.right)
