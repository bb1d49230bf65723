"""Do all texts of the candidate's item say what all texts of the query say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.query_texts import QueryTexts
from .parts.text_products import item_product


@dataclass(frozen=True)
class TextItems(Signal):
    """value = cos(sum of the query's texts, sum of the texts of the candidate's item), in the space of text_siblings.

    The candidate is left out of the query's texts. A candidate of several items takes the first.
    """

    because: ClassVar[str] = "its own item is described like the query"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        return item_product(material.part(QueryTexts), pairs)
