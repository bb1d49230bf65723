"""How far apart are the two sides?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.alignment import Alignment
from .parts.items import Items
from .parts.patient import Patient


@dataclass(frozen=True)
class ModalityGap(Check):
    """How far apart are the centres of both sides, and how high is the mean cosine of a pair?

    CLIP's gap is 0.8, and its pairs have cosines of 0.2 to 0.35: both are normal, and closing the gap hardly changes
    retrieval.
    Source: Liang et al. 2022, figure 1 and section 4.
    """

    gap: float = 0.3  # from which it is worth a line
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 90

    def examine(self, patient: Patient) -> Finding | None:
        split = patient.part(Items).split
        if split.images is None or split.captions is None or split.captions is split.images:
            raise Missing("it has no two sides of embeddings", "embeddings")
        gap = float((split.images.double().mean(0) - split.captions.double().mean(0)).norm())
        if gap < self.gap:
            return None
        positive = float(patient.part(Alignment).S.i2t.diagonal().mean())
        return self.finding(
            f"the two sides lie {gap:.2f} apart",
            f"The centres of both sides are {gap:.2f} apart, and a pair has a cosine of {positive:.2f} on average; "
            "CLIP's gap is 0.8 and its pairs have 0.2 to 0.35. Only ranks count: this is no fault.",
            (
                Evidence("distance of the centres", gap, self.gap, (0, 1)),
                Evidence("mean cosine of a pair", positive, None, (0.2, 1)),
            ),
            (Advice("Nothing needs to be done."),),
        )
