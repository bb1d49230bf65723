"""Are mined negatives closer to most queries than their positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.items import Items
from .parts.patient import Patient


@dataclass(frozen=True)
class HardNegativesTooHard(Check):
    """Is a mined negative above the positive for most queries?

    Source: sentence-transformers issues 2646 and 3279; Qu et al. 2021 (RocketQA), where 70 % of the top ranked
    passages were unlabelled positives.
    """

    share: float = 0.5  # of the queries
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 22
    explains: ClassVar[tuple[str, ...]] = ("temperature-too-low",)

    def examine(self, patient: Patient) -> Finding | None:
        split = patient.part(Items).split
        if split.relations.negatives is None:
            raise Missing("it has no mined negatives", "mined negatives")
        if patient.masks("above", "percent") or patient.recipe.get("negatives") == "none":
            return None
        above = negatives_above(split)
        share = float(above.mean()) if len(above) else 0.0
        patient.signals[self.id()] = share
        if share <= self.share:
            return None
        return self.finding(
            f"a mined negative is above the positive for {share:.0%} of the queries",
            f"For {share:.0%} of the queries a mined negative is more similar than the positive: most answer the "
            "query, or the model cannot tell them yet.",
            (Evidence("share of queries with a mined negative above the positive", share, self.share, (0, 0.5)),),
            (
                Advice("Drop negatives near the positive's score."),
                Advice("Mine from rank 30 to 100 instead of the top, and mix them with those of the batch."),
            ),
        )


def negatives_above(split: SplitEmbeddings) -> Rows:
    """Return, of each query with both, 1 where the hardest mined negative is above its best positive."""
    relations = split.relations
    assert relations.negatives is not None
    above = []
    starts = np.argsort(relations.positives[:, 0], kind="stable")
    owners = relations.positives[starts, 0]
    for row in range(relations.first):
        mined = relations.negatives[row][relations.negatives[row] != NONE]
        own = relations.positives[starts[np.searchsorted(owners, row) : np.searchsorted(owners, row, "right")], 1]
        if len(mined) and len(own):
            scores = split.similarities(np.array([row]), np.concatenate([own, mined])).i2t[0]
            above.append(int(scores[len(own) :].max() > scores[: len(own)].max()))
    return np.array(above, dtype=np.int64)
