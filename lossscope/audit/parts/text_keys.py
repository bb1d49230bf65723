"""Which texts of the second side are the same?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lossscope.core.facts import Missing
from lossscope.core.normal_form import normal_forms
from lossscope.core.plain_text import rest_key, text_key
from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from .material import Material


@dataclass(frozen=True)
class TextKeys:
    """Numbers of texts: equal where the words are, see `is_same_text`."""

    numbers: Rows  # (M,) of a text without its punctuation; −1 of an empty text
    rests: Rows  # (M,) of the text behind its title; −1 of a text without a title

    @classmethod
    def of(cls, material: Material) -> TextKeys:
        """Number the texts of the second side. Raises Missing if it has no texts."""
        if material.split is None:
            raise Missing("it has no texts; name the data with --data")
        numbers: dict[str, int] = {}
        forms = normal_forms(material.split.captions)
        texts = [numbers.setdefault(text_key(form), len(numbers)) if form else NONE for form in forms]
        rests = [numbers.get(key, NONE) if (key := rest_key(form)) else NONE for form in forms]
        return cls(np.array(texts, np.int64), np.array(rests, np.int64))

    def are_same(self, texts: Rows, others: Rows) -> npt.NDArray[np.bool_]:
        """(n,) whether texts equal others, both given by rows."""
        first, second = self.numbers[texts], self.numbers[others]
        same: npt.NDArray[np.bool_] = (first == second) & (first != NONE)
        for with_title, without in ((self.rests[texts], second), (self.rests[others], first)):
            same |= (with_title == without) & (with_title != NONE)
        return same
