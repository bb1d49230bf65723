"""Is a share of the pairs wrong?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.alignment import Alignment, DirectionAlignment, Floats
from .parts.encodings import Encodings
from .parts.items import Items
from .parts.patient import Patient

_TELL_APART = (
    "To tell wrong pairs from a fault of the encoder, encode the items one at a time and compare (--same-items)."
)


@dataclass(frozen=True)
class ShuffledShare(Check):
    """Does a share of the positives rank at chance level while the rest is fine?

    Positions of positives among their candidates are a mixture of a part near the top and a uniform part. Positives in
    the lower half come from the uniform part, so twice their share estimates it. Its density must be flat; that of hard
    but right pairs is not.
    Source: Storey 2002, the estimate of π₀; Huang et al. 2021 (NCR), noisy correspondence.
    """

    share: float = 0.06  # of the positives, lower end of its 95 % interval
    flatness: float = 0.6  # density of positions beyond 0.6 over 0.2 to 0.6; 1 if uniform, 0.5 in weak models
    auc: float = 0.7  # of all pairs, above which the rest is fine
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 20
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")
    explains: ClassVar[tuple[str, ...]] = ("temperature-too-low", "overfitting", "hard-negatives-too-hard")

    def examine(self, patient: Patient) -> Finding | None:
        alignment = patient.part(Alignment)
        if alignment.at_chance:
            return None
        lowest = min(alignment.directions, key=self._estimate)
        share, low, high = self._interval(lowest.share_above)
        patient.signals[self.id()] = low if self._flatness(lowest.share_above) >= self.flatness else 0.0
        if low < self.share or self._flatness(lowest.share_above) < self.flatness or lowest.auc < self.auc:
            return None
        worst = np.argsort(lowest.share_above)[::-1][:5]
        split = patient.part(Items).split
        first, second = split.sides.first, split.sides.second or split.sides.first
        return self.finding(
            f"about {share:.0%} of the pairs rank at chance level",
            f"{share:.0%} of the positives rank at chance level, and the others near the top. Either these "
            "pairs do not "
            "belong together, or the encoder loses some items (padding that counts in their mean); one encoding cannot "
            "tell which.",
            (
                Evidence("share of positives at chance", share, self.share, (0, 0.04), low, high),
                Evidence("flatness of their density", self._flatness(lowest.share_above), self.flatness, (None, None)),
            ),
            (
                Advice("Look at the pairs with the lowest similarity and drop those that are wrong."),
                *(() if patient.has(Encodings) else (Advice(_TELL_APART),)),
                Advice("Train with a loss that expects wrong pairs: --objective ncr."),
            ),
            examples=tuple(
                f"{first} {split.image_ids[row]} with {second} {split.caption_ids[column]}"
                for row, column in zip(alignment.rows.i2t[worst], alignment.rows.t2i[worst], strict=True)
            ),
        )

    @staticmethod
    def _estimate(direction: DirectionAlignment) -> float:
        return 2 * float((direction.share_above > 0.5).mean())

    @staticmethod
    def _interval(share_above: Floats) -> tuple[float, float, float]:
        """Return the share of the uniform part with its 95 % interval (Wilson)."""
        n, p = len(share_above), float((share_above > 0.5).mean())
        z = 1.96
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return min(2 * p, 1.0), max(2 * (centre - half), 0.0), min(2 * (centre + half), 1.0)

    @staticmethod
    def _flatness(share_above: Floats) -> float:
        middle, tail = float(((share_above > 0.2) & (share_above <= 0.6)).mean()), float((share_above > 0.6).mean())
        return tail / middle if middle else 0.0
