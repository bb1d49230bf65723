"""Does a triplet loss stay at its margin?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.engine.loss_levels import is_margin

from ._batches_or_log import of_batches_or_log
from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import Batches
from .parts.curve import Curve
from .parts.patient import Patient


@dataclass(frozen=True)
class MarginPlateau(Check):
    """Is a triplet loss equal to its margin, per negative, as positives and hardest negatives are equally similar?

    The soft margin's plateau is log 2, of ln(1 + e⁰).
    Source: triplet-reid issue 30; Xuan et al. 2020, hard negatives; Hermans et al. 2017.
    """

    near: float = 0.01  # of the loss to the margin, as a share
    above: float = 0.03  # of a loss that has come down to the margin and settled in the last quarter, likewise
    apart: float = 0.02  # of the mean similarities of positives and hardest negatives, at most
    together: float = 0.9  # similarity of both, where the loss is not known: equal ones of a hard task lie below
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 9
    explains: ClassVar[tuple[str, ...]] = (
        "complete-collapse", "no-learning", "hubness", "dimensional-collapse", "cone", "one-direction", "duplicates",
        "half-precision", "not-finished", "no-gradient", "modality-gap", "hard-negatives-too-hard",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        return of_batches_or_log(
            patient, lambda batches: self._of_batches(patient, batches), lambda curve: self._of_curve(patient, curve)
        )

    def _of_batches(self, patient: Patient, batches: Batches) -> Finding | None:
        if not is_margin(batches.objective):
            return None
        positive, hardest = (float(np.mean(x)) for x in (batches.queries.positive, batches.queries.hardest))
        if abs(batches.loss / batches.guess - 1) > self.near or abs(positive - hardest) > self.apart:
            return None
        name = f"the margin {batches.objective.margin:g} per negative"  # type: ignore[attr-defined]
        return self._found(patient, batches.loss, batches.guess, name, positive, hardest)

    def _of_curve(self, patient: Patient, curve: Curve) -> Finding | None:
        positive, hardest = (self._last(curve, name) for name in ("positive", "hardest_negative"))
        is_known = positive is not None and hardest is not None
        equal = positive is not None and hardest is not None and abs(positive - hardest) <= self.apart
        if not (curve.is_flat or curve.has_settled) or (is_known and not equal) or curve.recall_rises:
            return None
        if curve.objective is None:
            if positive is None or not equal or positive < self.together or not curve.level > 0:
                return None
            return self._found(patient, curve.level, curve.level, "the value of equal similarities", positive, hardest)
        guess = curve.nearest_guess(self.above)
        tolerance = self.near if curve.is_flat else self.above
        if not is_margin(curve.objective) or guess is None:
            return None
        if not -self.near <= curve.level / guess.value - 1 <= tolerance:
            return None
        return self._found(patient, curve.level, guess.value, guess.name, positive, hardest)

    @staticmethod
    def _last(curve: Curve, name: str) -> float | None:
        values = curve.column(name)
        values = values[np.isfinite(values)]
        return float(np.median(values[-max(len(values) // 4, 1) :])) if len(values) else None

    def _found(
        self, patient: Patient, loss: float, plateau: float, name: str, positive: float | None, hardest: float | None
    ) -> Finding:
        pair: tuple[Evidence, ...] = ()
        if positive is not None and hardest is not None:
            pair = (Evidence("positive − hardest negative similarity", positive - hardest, self.apart, (0.05, None)),)
        return self.finding(
            f"the loss stays at {name}",
            f"The loss is {loss:.4g}, {loss / plateau:.2f} times {name}: positives and hardest negatives are equally "
            "similar. From there the gradient of the hardest negatives pulls all items together.",
            (Evidence(f"loss / {name}", loss / plateau, 1 + self.near, (0, 0.95)), *pair),
            (
                Advice(
                    "Train the first epochs with all negatives, then with the hardest.",
                    patient.warmup_command(),
                ),
                Advice("Mine semi-hard negatives, use smaller batches, or a tenth of the learning rate."),
            ),
        )
