"""Does the learnt scale fall while the loss does not?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity, TooLittle
from .parts.curve import Curve
from .parts.learnt_scale import LearntScale
from .parts.patient import Patient


@dataclass(frozen=True)
class ScaleFalling(Check):
    """Does the learnt scale fall for good, with a loss that stays where it is?

    A model that cannot rank lowers its scale, which makes its mistakes cheaper. A scale that dips and returns is normal
    when a trained model is trained further.
    Source: open_clip issue 815; CLIP issue 46.
    """

    ratio: float = 0.6  # of the scale at the end over the scale at the start
    fall: float = 0.03  # of the loss since the first third, at most
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 28
    healthy: ClassVar[tuple[str, str] | None] = ("at least", "ratio")
    explains: ClassVar[tuple[str, ...]] = ("no-learning", "temperature-too-high", "not-finished")

    def examine(self, patient: Patient) -> Finding | None:
        scale = patient.part(LearntScale).scale
        if len(scale) < 3:
            raise TooLittle("the scale is known at fewer than 3 steps", "a log of the learnt scale")
        curve = patient.part(Curve)
        tail = max(len(scale) // 10, 1)
        first, last = float(scale[0]), float(np.median(scale[-tail:]))
        patient.signals[self.id()] = last / first if curve.drift >= -self.fall else 1.0
        if last >= self.ratio * first or curve.drift < -self.fall:
            return None
        return self.finding(
            f"the learnt scale falls from {first:.3g} to {last:.3g} with a flat loss",
            f"The scale on cosines fell to {last / first:.0%} of its start and the loss changed by {curve.drift:+.1%}: "
            "the model makes its mistakes cheaper instead of ranking better.",
            (
                Evidence("scale at the end / at the start", last / first, self.ratio, (0.8, None)),
                Evidence("change of the loss since the first third", curve.drift, -self.fall, (None, -0.05)),
            ),
            (
                Advice("Hold the scale (1 / 0.07) until recall rises: set logit_scale.requires_grad = False."),
                Advice("Lower the learning rate of the scale, leave it out of weight decay, and look at the pairs."),
            ),
        )
