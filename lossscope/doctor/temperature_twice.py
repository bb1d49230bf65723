"""Are similarities divided by the temperature before the objective does it again?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.matrix import Matrix
from .parts.patient import Patient


@dataclass(frozen=True)
class TemperatureTwice(Check):
    """Are there similarities outside [−1, 1], as in logits that are divided by tau or multiplied by a learnt scale?

    Under an unknown objective they may be products of rows of any length: then it is a note.
    Source: a cosine is at most 1; every objective here scales cosines itself.
    """

    share: float = 0.01  # of the entries; more than rounding makes
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 5
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")
    explains: ClassVar[tuple[str, ...]] = (
        "temperature-too-low", "half-precision", "no-gradient", "batch-ceiling", "hard-negatives-too-hard",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        matrix = patient.part(Matrix)
        patient.signals[self.id()] = matrix.beyond
        if matrix.beyond <= self.share:
            return None
        return self.finding(
            f"similarities reach {matrix.largest:.3g}: not cosines",
            f"{matrix.beyond:.0%} of the similarities are outside [−1, 1]: they were scaled already, by 1 / tau or a "
            "learnt logit scale, and the objective scales them again.",
            (
                Evidence("share of similarities outside [−1, 1]", matrix.beyond, self.share, (0, 0)),
                Evidence("largest similarity", matrix.largest, 1.01, (0, 1)),
            ),
            (
                Advice("Pass cosines: the product of normalised embeddings, without logit_scale and without / tau."),
                Advice(
                    f"If it was a single scale, divide by it: divided by {matrix.largest:.3g}, this matrix is at most "
                    "1."
                ),
            ),
            None if patient.objective_spec is not None else "note",
        )
