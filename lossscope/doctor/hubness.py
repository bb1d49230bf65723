"""Are a few candidates near most queries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.alignment import Alignment
from .parts.hubs import DirectionHubs, Hubs
from .parts.items import Items
from .parts.patient import Patient


@dataclass(frozen=True)
class Hubness(Check):
    """Do the k-occurrences of candidates have a skewness far above that of neighbours drawn by lot?

    High dimensions always make hubs, so the largest one is looked at, too.
    Source: Radovanović et al. 2010; openai/CLIP issue 99 (one image for every query).
    """

    skewness: float = 1.0  # of the k-occurrences, above the 99th percentile of their null
    largest: float = 0.3  # share of the queries with one and the same nearest; 0.19 in the first plateau of a training
    hubs: float = 0.3  # share of the queries whose nearest is one of 1 % of the candidates; 0.17 in trained models
    recall: float = 0.1  # above which a model has left its first plateau
    beyond: float = 2.0  # times the 99th percentile of the largest share where the nearest is drawn by lot
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 45

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        hubs, alignment = patient.part(Hubs), patient.part(Alignment)
        is_trained = alignment.best.recall >= self.recall
        patient.signals[self.id()] = max(
            one.share_of_hubs if is_trained else one.largest_share for one in hubs.directions
        )
        found = [one for one in hubs.directions if self._is_crowded(one, is_trained)]
        if not found:
            return None
        worst = max(found, key=lambda one: one.share_of_hubs)
        largest, gathered = self._thresholds(worst)
        hub = int(worst.firsts.argmax())
        split, forth = patient.part(Items).split, worst is hubs.directions[0]
        rows, ids = (alignment.rows.t2i, split.caption_ids) if forth else (alignment.rows.i2t, split.image_ids)
        number = len(worst.candidates)
        return self.finding(
            f"{number} of the candidates take {worst.share_of_hubs:.0%} of the queries",
            f"In {worst.label}, neighbours gather on few candidates: the skewness of the {worst.k}-occurrences is "
            f"{worst.skewness:.1f}, by lot it would be at most {worst.null:.1f}.",
            (
                Evidence(
                    f"share of queries near 1 % of the candidates, {worst.label}",
                    worst.share_of_hubs,
                    gathered if is_trained else None,
                    (0, 0.2),
                ),
                Evidence(f"share of queries with one nearest, {worst.label}", worst.largest_share, largest, (0, 0.1)),
                Evidence(f"skewness of N_{worst.k}, {worst.label}", worst.skewness, worst.null + self.skewness, (0, 4)),
            ),
            (
                Advice("Normalise scores by the queries of a bank (QB-Norm, inverted softmax) at retrieval."),
                Advice("Train both directions, with a larger width or a lower temperature."),
            ),
            examples=(f"candidate {ids[rows[hub]]}",),
        )

    def _thresholds(self, one: DirectionHubs) -> tuple[float, float]:
        """Return those of the largest share and of the share of 1 % of the candidates, above what lots give."""
        by_lot = self.beyond * one.null_first
        return max(self.largest, by_lot), max(self.hubs, by_lot)

    def _is_crowded(self, one: DirectionHubs, is_trained: bool) -> bool:
        """Return whether neighbours of a direction gather on one candidate, or of a trained model on 1 % of them."""
        largest, gathered = self._thresholds(one)
        is_hub = one.largest_share >= largest or (is_trained and one.share_of_hubs >= gathered)
        return is_hub and one.skewness >= one.null + self.skewness
