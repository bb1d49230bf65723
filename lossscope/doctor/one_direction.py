"""Does retrieval work in one direction only?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .logs.base import TrainingLog
from .parts.alignment import Alignment
from .parts.curve import Curve
from .parts.patient import Patient


@dataclass(frozen=True)
class OneDirection(Check):
    """Is recall of one direction at chance while that of the other is not?

    Source: a loss of one direction leaves the other without a gradient (Radford et al. 2021 add both).
    """

    ratio: float = 0.15  # recall of the lower direction over that of the higher one
    higher: float = 10.0  # times chance, or per cent in a log, that the higher one is at least
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 25
    healthy: ClassVar[tuple[str, str] | None] = ("at least", "ratio")
    explains: ClassVar[tuple[str, ...]] = ("hubness", "shuffled-share", "no-learning")

    def examine(self, patient: Patient) -> Finding | None:
        if patient.has(Alignment):
            return self._of_alignment(patient, patient.part(Alignment))
        if not patient.has(TrainingLog):
            raise Missing("it has neither pairs nor a log", "a training log (--log)")
        return self._of_log(patient.part(Curve))

    def _of_alignment(self, patient: Patient, alignment: Alignment) -> Finding | None:
        if len(alignment.directions) < 2:
            raise Missing("a single set has a single direction")
        low, high = sorted(alignment.directions, key=lambda direction: direction.recall)
        at_chance = low.recall <= low.chance + 3 * np.sqrt(low.chance / len(low.share_above))
        patient.signals[self.id()] = low.recall / high.recall if high.recall else 1.0
        fails = at_chance or low.recall < self.ratio * high.recall
        if not fails or high.recall < self.higher * high.chance or high.auc < 0.7 or high.recall < 0.05:
            return None
        return self._found(low.label, low.recall, high.label, high.recall, f"chance is {low.chance:.3g}")

    def _of_log(self, curve: Curve) -> Finding | None:
        first, second = curve.evaluations("val_recall_first"), curve.evaluations("val_recall_second")
        if not len(first) or not len(second):
            raise Missing("its log has no recall of both directions", "recall of both directions in the log")
        low, high = sorted(((first[-1], "the first"), (second[-1], "the second")))
        scale = 100.0 if max(first.max(), second.max()) > 1 else 1.0
        if high[0] < self.higher / 100 * scale or low[0] > self.ratio * high[0]:
            return None
        return self._found(low[1], low[0], high[1], high[0], "at the end of the log")

    def _found(self, low: str, low_recall: float, high: str, high_recall: float, beside: str) -> Finding:
        return self.finding(
            f"retrieval works in one direction only: {low} fails",
            f"Recall@1 of {low} is {low_recall:.3g} ({beside}); that of {high} is {high_recall:.3g}.",
            (
                Evidence(f"recall@1 of {low} / of {high}", low_recall / high_recall, self.ratio, (0.5, 2)),
                Evidence(f"recall@1 of {high}", high_recall, None, (None, None)),
            ),
            (Advice("Add the loss of both directions: (loss(S) + loss(S.T)) / 2."),),
        )
