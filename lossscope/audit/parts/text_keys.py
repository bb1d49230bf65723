"""Which texts of the second side are the same?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossscope.core.facts import Missing
from lossscope.core.normal_form import normal_forms
from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from .material import Material


@dataclass(frozen=True)
class TextKeys:
    """Numbers of texts."""

    numbers: Rows  # (M,) equal where the words are; −1 of an empty text

    @classmethod
    def of(cls, material: Material) -> TextKeys:
        """Number the texts of the second side. Raises Missing where there are none."""
        if material.split is None:
            raise Missing("it has no texts; name the data with --data")
        numbers: dict[str, int] = {}
        texts = normal_forms(material.split.captions)
        return cls(np.array([numbers.setdefault(text, len(numbers)) if text else NONE for text in texts], np.int64))
