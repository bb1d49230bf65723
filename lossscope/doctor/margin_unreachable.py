"""Is the margin larger than any distance?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.engine.loss_levels import Layout, is_unreachable, loss_levels
from lossscope.objectives.base import Objective

from ._recipe_advice import margin_command
from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .logs.base import TrainingLog
from .parts.patient import Patient, build_objective

_PAIRS = 8  # of the batch that shows it; the result does not depend on their number


@dataclass(frozen=True)
class MarginUnreachable(Check):
    """Is a margin so wide that no unit vectors satisfy it, so that every triplet or pair is active for ever?

    With positives at cosine 1 and all negatives at −1 the loss is still above 0: easy negatives weigh as much as hard
    ones, and the loss never reaches 0. Such a margin is above 2, on Euclidean distances as on cosines.
    Source: distances of unit vectors are at most 2; Schroff et al. 2015 normalise and take 0.2.
    """

    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 7
    explains: ClassVar[tuple[str, ...]] = ("no-learning", "margin-plateau", "not-finished")

    def examine(self, patient: Patient) -> Finding | None:
        objective = self._objective(patient)
        margin = getattr(objective, "margin", None)
        if not isinstance(margin, float):
            raise Missing("its objective has no margin")
        if not is_unreachable(objective):
            return None
        levels = loss_levels(objective, Layout(_PAIRS))
        assert levels is not None
        best = levels.apart / levels.guess
        return self.finding(
            f"no unit vectors can satisfy the margin {margin:g}",
            f"With positives at cosine 1 and all negatives at −1, the loss is still {best:.0%} of that of guessing: "
            "every negative stays active for ever, even an easy one.",
            (Evidence("loss of the best possible vectors / loss of guessing", best, 0.0, (0, 0)),),
            (
                Advice(
                    "Use a margin of 0.2 to 0.5 on cosines, or of 0.5 to 1 on Euclidean distances of unit vectors.",
                    margin_command(patient, objective),
                ),
                Advice("If rows may have any length, watch the loss with your own distances."),
            ),
        )

    @staticmethod
    def _objective(patient: Patient) -> Objective:
        if patient.objective_spec is None and patient.has(TrainingLog):
            spec = patient.part(TrainingLog).objective
            if spec:
                return build_objective(spec)
        return patient.objective
