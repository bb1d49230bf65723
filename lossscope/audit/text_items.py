"""Are the candidate's item and the query described alike, all texts of each together?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, PairRows, Signal
from .parts.material import Material
from .parts.text_products import item_product


@dataclass(frozen=True)
class TextItems(Signal):
    """value = cos(sum of the query's texts, sum of the texts of the candidate's items), the candidate left out of the first.

    Of the space of `text_siblings`.
    """

    because: ClassVar[str] = "the query and its own item are described alike"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        return item_product(material, pairs)
