"""Does the candidate's text say what the query's own texts say, in a space learnt from texts of one item?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.pair_products import nearest_reference
from .parts.query_texts import QueryTexts


@dataclass(frozen=True)
class TextSiblings(Signal):
    """value = max over the query's positives t of cos(P candidate, P t): P of `parts.text_space.sibling_projection`.

    Texts of one item differ in what they leave open and in synonyms; the space plays both down. A text without a word
    of the training texts has no vector in it.
    Source: latent semantics (Deerwester et al. 1990) with Fisher's discriminant.
    """

    because: ClassVar[str] = "its text says what a text of the query says"
    group: ClassVar[Group] = "texts"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        texts = material.part(QueryTexts)
        value = nearest_reference(texts.space.siblings, pairs, texts.known)
        value[~texts.space.is_known[pairs.right]] = np.nan
        return value
