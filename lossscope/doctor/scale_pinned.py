"""Does the learnt scale sit at its clamp?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.learnt_scale import LearntScale
from .parts.patient import Patient


@dataclass(frozen=True)
class ScalePinned(Check):
    """Has the learnt scale reached its clamp, 100 in CLIP? That is normal in good models.

    Source: Radford et al. 2021, section 2.5; open_clip issue 214.
    """

    clamp: float = 100.0  # of CLIP
    near: float = 0.01  # of the clamp, as a share
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 80

    def examine(self, patient: Patient) -> Finding | None:
        scale = patient.part(LearntScale).scale
        if not len(scale):
            raise Missing("no learnt scale is known", "a log of the learnt scale")
        tail = scale[-max(len(scale) // 5, 1) :]
        patient.signals[self.id()] = float(np.median(tail))
        if not np.all(np.abs(tail / self.clamp - 1) < self.near):
            return None
        return self.finding(
            f"the learnt scale sits at its clamp, {self.clamp:g}",
            "The scale on cosines has grown to its limit, as that of CLIP does: normal in a model that ranks well.",
            (Evidence("learnt scale", float(np.median(tail)), self.clamp, (None, self.clamp)),),
            (Advice("Nothing needs to be done; a larger clamp makes half precision lose digits."),),
        )
