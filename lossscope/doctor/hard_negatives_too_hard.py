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

    Other captions of the same image, or other answers, are above the positive for a half of the queries where each has
    one of them. Their similarities have the distribution of the positives, which those of hard negatives do not.
    Source: sentence-transformers issues 2646 and 3279; Qu et al. 2021 (RocketQA), where 70 % of the top ranked
    passages were unlabelled positives.
    """

    share: float = 0.5  # of the queries
    deviations: float = 1.36  # distance of samples of one distribution, over √(2 / m), that 5 % exceed
    told: float = 0.4  # distance of positives from the positives of other queries, from which on a model tells them
    least: int = 200  # queries; fewer do not tell the two distributions apart
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 22
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
                f"a mined negative is above the positive for {share:.0%} of the queries",
                f"For {share:.0%} of the queries a mined negative is more similar than the positive: most answer the "
                "query, or the model cannot tell them yet.",
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
            "The similarities of mined negatives are distributed as those of positives, which this model tells from "
            "other candidates: they may be other positives of the same items.",
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
                Advice("Look at ten queries with their mined negatives: those that answer the query are positives."),
                Advice("Drop negatives near the positive's score."),
                Advice("Mine from rank 30 to 100 instead of the top, and mix them with those of the batch."),
            ),
        )


class Scores(NamedTuple):
    """(m,) similarities of the queries that have a positive, a mined negative and a candidate of another query."""

    positive: Floats  # the best one
    hardest: Floats  # of the mined negatives
    mined: Floats  # one of them, the first
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
            own, of_mined = scores[: end - first], scores[end - first : -1]
            rows.append([float(x) for x in (own.max(), of_mined.max(), of_mined[0], scores[-1])])
    return Scores(*np.array(rows, dtype=np.float64).reshape(-1, 4).T)
