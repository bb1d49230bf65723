"""Are mined negatives closer to most queries than their positive, or as close as positives are?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.items import Items
from .parts.patient import Patient

Floats = npt.NDArray[np.float64]
_SHARE = "share of queries with a mined negative above the positive"


@dataclass(frozen=True)
class HardNegativesTooHard(Check):
    """Is a mined negative above the positive for most queries, or are mined negatives distributed as positives are?

    If each query has one more caption of its image, or one more answer, as a mined negative, it is above the positive
    for half of the queries. Its similarities have the distribution of the positives; those of hard negatives do not.
    Source: sentence-transformers issues 2646 and 3279; Qu et al. 2021 (RocketQA), where 70 % of the top ranked
    passages were unlabelled positives.
    """

    share: float = 0.5  # of the queries
    deviations: float = 1.36  # distance that 5 % of samples of one distribution exceed, over √(2 / m)
    told: float = 0.4  # distance of positives from those of other queries, from which a model tells them apart
    least: int = 200  # queries; with fewer the distributions cannot be compared
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 22
    explains: ClassVar[tuple[str, ...]] = ("temperature-too-low",)

    def examine(self, patient: Patient) -> Finding | None:
        split = patient.part(Items).split
        if split.relations.negatives is None:
            raise Missing("it has no mined negatives", "mined negatives")
        if patient.masks("above", "percent") or patient.recipe.get("negatives") == "none":
            return None
        scores = scores_of(split)
        share = float((scores.hardest > scores.positive).mean()) if len(scores.positive) else 0.0
        patient.signals[self.id()] = share
        if share > self.share:
            return self._found(
                f"a mined negative ranks above the positive for {share:.0%} of the queries",
                f"For {share:.0%} of the queries a mined negative is more similar than the positive: most of these "
                "negatives answer the query, or the model cannot tell them apart yet.",
                (Evidence(_SHARE, share, self.share, (0, 0.5)),),
            )
        if len(scores.positive) < self.least or distance(scores.positive, scores.other) < self.told:
            return None
        apart = distance(scores.positive, scores.mined)
        by_chance = self.deviations * float(np.sqrt(2 / len(scores.positive)))
        if apart >= by_chance:
            return None
        return self._found(
            "mined negatives are as similar to their queries as positives are",
            "Similarities of mined negatives and of positives have the same distribution, although the model tells "
            "positives from other candidates: these negatives may be further positives of the same items.",
            (
                Evidence("distance of the distributions of positives and mined negatives", apart, by_chance, (0.2, 1)),
                Evidence(_SHARE, share, None, (0, 0.5)),
            ),
        )

    def _found(self, title: str, why: str, evidence: Sequence[Evidence]) -> Finding:
        return self.finding(
            title,
            why,
            tuple(evidence),
            (
                Advice("Read ten queries with their mined negatives: a negative that answers its query is a positive."),
                Advice("Drop negatives that score near the positive."),
                Advice(
                    "Mine from ranks 30 to 100 instead of the top, and mix mined negatives with in-batch negatives."
                ),
            ),
        )


class Scores(NamedTuple):
    """(m,) similarities of the queries that have a positive, a mined negative and a candidate of another query."""

    positive: Floats  # the best positive
    hardest: Floats  # of the mined negatives
    mined: Floats  # the first of them
    other: Floats  # the positive of another query


def distance(first: Floats, second: Floats) -> float:
    """Return max |F(x) − G(x)| of the distributions of two samples, Kolmogorov and Smirnov's statistic."""
    x = np.concatenate([first, second])
    both = (np.searchsorted(np.sort(sample), x, "right") / len(sample) for sample in (first, second))
    return float(np.abs(np.subtract(*both)).max())


def scores_of(split: SplitEmbeddings) -> Scores:
    """Return the similarities of the queries that have positives and mined negatives."""
    relations = split.relations
    assert relations.negatives is not None
    rows = []
    starts = np.argsort(relations.positives[:, 0], kind="stable")
    owners, positives = relations.positives[starts].T
    for row in range(relations.first):
        mined = relations.negatives[row][relations.negatives[row] != NONE]
        first, end = np.searchsorted(owners, row), np.searchsorted(owners, row, "right")
        if len(mined) and end > first:
            other = positives[end % len(positives)]  # of the next query
            scores = split.similarities(np.array([row]), np.concatenate([positives[first:end], mined, [other]])).i2t[0]
            of_positives, of_mined = scores[: end - first], scores[end - first : -1]
            rows.append([float(x) for x in (of_positives.max(), of_mined.max(), of_mined[0], scores[-1])])
    return Scores(*np.array(rows, dtype=np.float64).reshape(-1, 4).T)
