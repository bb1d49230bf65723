"""Do several models, or epochs, agree that the candidate is as good as the positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Floats, Group, Missing, PairRows, Signal
from .parts.material import Material


@dataclass(frozen=True)
class Agreement(Signal):
    """value = share of the models under which s >= s₊ − (1 − share) |s₊|; it needs two models."""

    share: float = 0.95  # of the positive's similarity, as in `--mask percent`
    because: ClassVar[str] = "several models agree"
    group: ClassVar[Group] = "embeddings"

    def values(self, material: Material, pairs: PairRows) -> Floats:
        if len(material.models) < 2:
            raise Missing("agreement needs two sources or more; it has fewer")
        votes = np.zeros(len(pairs), np.float32)
        for model in material.models:
            positive = model.positive(pairs)
            votes[np.isnan(positive)] = np.nan
            votes += model.similarity(pairs) >= positive - (1 - self.share) * np.abs(positive)
        share: Floats = (votes / len(material.models)).astype(np.float32)
        return share
