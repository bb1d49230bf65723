"""Do query and candidate have the same names and numbers?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.text_names import TextNames
from .parts.text_products import name_product


@dataclass(frozen=True)
class NamesAgree(Signal):
    """value = cos(names of the query and of its positives together, names of the candidate), weighted by idf.

    A name is a number, or a word that mostly has a capital within sentences. Texts of a template about another person,
    date or number differ only in names. The candidate is left out of the positives. If query or candidate has no name,
    the signal has no value. Both sides must be texts.
    """

    because: ClassVar[str] = "it shares names or numbers with the query"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        return name_product(material.part(TextNames), pairs)
