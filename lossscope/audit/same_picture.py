"""Is the query's picture a copy of a picture that the candidate belongs to?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.relations import NONE

from .base import Floats, Group, PairRows, Signal
from .parts.material import Material
from .parts.picture_hashes import PictureHashes


@dataclass(frozen=True)
class SamePicture(Signal):
    """value = 1 where the pictures are the same, perhaps in another size or quality; else 0.

    A perceptual hash of 768 bits tells for 16 x 16 cells of each colour whether a cell is brighter than the cell to its
    left. If at most `bits` bits differ, the means of the cells are compared, as pictures of plain grounds share hashes.
    Pictures with hardly any detail have no hash. Source: difference hash (Krawetz 2013).
    """

    bits: int = 38  # 5 % of the hash
    step: int = 24  # of 255: the largest difference between the means of a cell
    because: ClassVar[str] = "its picture is a copy of the query's"
    group: ClassVar[Group] = "copies"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        copies = material.part(PictureHashes)
        hashes, thumbnails = copies.hashes, copies.thumbnails
        equal = np.zeros(len(pairs), bool)
        columns = [*material.positives_of_candidates[pairs.right].T]
        if material.relations.one_set:
            columns.append(pairs.right)  # the candidate is a picture itself
        for column in columns:
            use = np.nonzero((column != NONE) & (column != pairs.left))[0]
            pictures, others = pairs.left[use], column[use]
            differ = np.bitwise_count(hashes[pictures] ^ hashes[others]).sum(1)
            near = hashes[pictures].any(1) & hashes[others].any(1) & (differ <= self.bits)
            steps = np.abs(thumbnails[pictures[near]].astype(np.int16) - thumbnails[others[near]])
            equal[use[near]] |= steps.max(1, initial=0) <= self.step
        return equal.astype(np.float32)
