"""Does the candidate repeat a positive of the query, word for word?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.relations import NONE

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.text_keys import TextKeys


@dataclass(frozen=True)
class SameText(Signal):
    """value = 1 if the candidate's text equals a positive's but for case, blanks, punctuation and a title; else 0.

    In one set the query's text counts, too. Such a pair matches, whatever the other signals say. An empty text says
    nothing. In texts of 20 letters or more punctuation and blanks may differ, and either text may begin with a title
    that ends with a colon, bar or dash and is at most as long as the text. Any other word or number, even an article,
    makes another text, which proves nothing.
    """

    because: ClassVar[str] = "it repeats a positive of the query, word for word"
    group: ClassVar[Group] = "copies"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        keys = material.part(TextKeys)
        same = keys.are_same(pairs.left, pairs.right) if material.relations.one_set else np.zeros(len(pairs), bool)
        for column in material.positives_of_queries[pairs.left].T:
            same |= (column != NONE) & (column != pairs.right) & keys.are_same(column, pairs.right)
        return np.asarray(same, np.float32)
