"""Is the query's picture a copy of a picture that the candidate belongs to?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.relations import NONE

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material


@dataclass(frozen=True)
class SamePicture(Signal):
    """value = 1 where the pictures differ in at most `bits` of the 768 of a perceptual hash; else 0.

    The hash says of 16 x 16 places of each colour whether they are brighter than the one to their left, as copies in another
    size or quality agree. Pictures with hardly any detail have none. Source: difference hash (Krawetz 2013).
    """

    bits: int = 38  # 5 % of the hash
    because: ClassVar[str] = "its picture is a copy of the query's"
    group: ClassVar[Group] = "copies"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        hashes = material.picture_hashes
        equal = np.zeros(len(pairs), bool)
        for column in material.positives_of_candidates[pairs.right].T:
            use = np.nonzero((column != NONE) & (column != pairs.left))[0]
            differ = np.bitwise_count(hashes[pairs.left[use]] ^ hashes[column[use]]).sum(1)
            known = hashes[pairs.left[use]].any(1) & hashes[column[use]].any(1)
            equal[use] |= known & (differ <= self.bits)
        return equal.astype(np.float32)
