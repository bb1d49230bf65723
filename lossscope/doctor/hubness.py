"""Are a few candidates near most queries?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.types import Rows

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment
from .parts.hubs import DirectionHubs, Hubs
from .parts.items import Items
from .parts.patient import Patient
from .parts.remedies import centred, without

_CENTRED = "with the mean of each side subtracted"


@dataclass(frozen=True)
class Hubness(Check):
    """Do the k-occurrences of candidates have a skewness far above that of random neighbours?

    High dimensions always make hubs, so the check reads the largest hub, too.
    Source: Radovanović et al. 2010; openai/CLIP issue 99 (one image for every query).
    """

    skewness: float = 1.0  # of the k-occurrences, above the 99th percentile of their null
    largest: float = 0.3  # share of the queries with the same nearest; 0.19 in the first plateau of a training
    hubs: float = 0.3  # share of the queries whose nearest is one of 1 % of the candidates; 0.17 in trained models
    recall: float = 0.1  # above which a model has left its first plateau
    beyond: float = 2.0  # times the 99th percentile of the largest share where the nearest is random
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 45
    healthy: ClassVar[tuple[str, str] | None] = ("below", "hubs")

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        hubs, alignment = patient.part(Hubs), patient.part(Alignment)
        is_trained = alignment.best.recall >= self.recall
        patient.signals[self.id()] = max(
            direction.share_of_hubs if is_trained else direction.largest_share for direction in hubs.directions
        )
        found = [direction for direction in hubs.directions if self._is_crowded(direction, is_trained)]
        if not found:
            return None
        worst = max(found, key=lambda direction: direction.share_of_hubs)
        largest, gathered = self._thresholds(worst)
        hub = int(worst.firsts.argmax())
        split, forth = patient.part(Items).split, worst is hubs.directions[0]
        rows, ids = (alignment.rows.t2i, split.caption_ids) if forth else (alignment.rows.i2t, split.image_ids)
        number = len(_heaviest(worst))
        gathered_by = float(worst.firsts[_heaviest(worst)].sum() / worst.firsts.sum())
        return self.finding(
            f"{number} of {len(worst.firsts):,} candidates are nearest to {gathered_by:.0%} of the queries",
            f"In {worst.label}, a few candidates are the neighbours of many queries: the {worst.k}-occurrences have a "
            f"skewness of {worst.skewness:.1f}, and random neighbours would give at most {worst.null:.1f}.",
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
                Advice("Subtract the mean of each side before retrieval.", remedy=_CENTRED),
                Advice(
                    "Look at these candidates: short, empty or truncated items are near everything.",
                    remedy=_without(worst),
                ),
                Advice("At retrieval, normalise scores over a bank of queries (QB-Norm, inverted softmax)."),
                Advice("Train both directions, with a larger width or a lower temperature."),
            ),
            examples=(f"candidate {ids[rows[hub]]}",),
        )

    def _thresholds(self, direction: DirectionHubs) -> tuple[float, float]:
        """Return the thresholds of the largest share and of the share of 1 % of the candidates, both above chance."""
        by_chance = self.beyond * direction.null_first
        return max(self.largest, by_chance), max(self.hubs, by_chance)

    def _is_crowded(self, direction: DirectionHubs, is_trained: bool) -> bool:
        """Return whether neighbours of a direction gather on one candidate, or of a trained model on 1 % of them."""
        largest, gathered = self._thresholds(direction)
        is_hub = direction.largest_share >= largest or (is_trained and direction.share_of_hubs >= gathered)
        return is_hub and direction.skewness >= direction.null + self.skewness

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Remove the heaviest hubs; subtract the mean of each side."""
        split, alignment = patient.part(Items).split, patient.part(Alignment)
        directions = patient.part(Hubs).directions
        worst = max(directions, key=lambda direction: direction.share_of_hubs)
        rows = _heaviest(worst)
        nothing = rows[:0]
        forth = worst is directions[0]
        second = alignment.rows.t2i[rows] if forth else nothing
        first = nothing if forth else alignment.rows.i2t[rows]
        found = [Remedy(_without(worst), without(split, first, second))]
        if split.images is not None and split.captions is not None:
            found.append(Remedy(_CENTRED, centred(split)))
        return found


def _heaviest(hubs: DirectionHubs) -> Rows:
    """Return the candidates nearest to more queries than chance allows, at most 1 % of all candidates."""
    rows: Rows = hubs.candidates[hubs.firsts[hubs.candidates] > hubs.null_first * len(hubs.firsts)]
    return rows if len(rows) else hubs.candidates[:1]


def _without(hubs: DirectionHubs) -> str:
    number = len(_heaviest(hubs))
    return f"without the {f'{number} candidates' if number > 1 else 'candidate'} nearest to most queries, {hubs.label}"
