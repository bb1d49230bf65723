"""How much does the candidate's text say that no text of the query says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.query_texts import QueryTexts
from .parts.text_products import unsaid_weight


@dataclass(frozen=True)
class TextMissing(Signal):
    """value = −log(1 + Σ idf of the stems, and pairs of stems, of the candidate that no text of the query has).

    The idf comes from the training texts; a phrase that none of them has gets the largest. A short text that leaves
    much open can be true of many queries, though it is not similar to their texts.
    """

    because: ClassVar[str] = "its text adds little to the texts of the query"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        return -unsaid_weight(material.part(QueryTexts), pairs)
