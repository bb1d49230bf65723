"""Is validation recall still rising?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity, TooLittle
from .parts.curve import Curve
from .parts.patient import Patient


@dataclass(frozen=True)
class NotFinished(Check):
    """Is validation recall still rising at the end of the log?

    Source: the last evaluation is the best, and the last quarter still gained.
    """

    gain: float = 0.03  # of validation recall in the last quarter, as a share of its best
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 85

    def examine(self, patient: Patient) -> Finding | None:
        curve = patient.part(Curve)
        recall, name = curve.evaluations("val_recall"), curve.name_of_recall
        if len(recall) < 4:
            kind = TooLittle if len(recall) else Missing
            raise kind("its log has fewer than 4 evaluations of recall", "4 evaluations of recall")
        quarter = max(len(recall) // 4, 1)
        before, last = float(np.max(recall[:-quarter])), float(recall[-1])
        gain = (last - before) / max(float(recall.max()), 1e-12)
        if last < float(recall.max()) or gain < self.gain:
            return None
        return self.finding(
            f"{name} is still rising, by {gain:.0%} in the last quarter",
            f"Its best value before the last quarter was {before:.4g}; at the end it is {last:.4g}.",
            (Evidence("gain of the last quarter", gain, self.gain, (0, self.gain)),),
            (Advice("Train for more epochs.", _more_epochs(patient)),),
        )


def _more_epochs(patient: Patient) -> str | None:
    """Return the command that resumes a run for as many epochs again."""
    epochs = patient.recipe.get("epochs")
    if patient.run is None or not isinstance(epochs, int):
        return None
    return f"lossscope train --resume {shlex.quote(str(patient.run))} --epochs {2 * epochs}"
