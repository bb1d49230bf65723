"""Does training change the model at all?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.curve import Curve
from .parts.parameters import Parameters
from .parts.patient import Patient

_ADVICE = (
    Advice(
        "Check that the optimiser has the model's parameters, was made after .to(device), and that step() is called."
    ),
    Advice("Check requires_grad, detach() and torch.no_grad() on the way from the loss to the weights."),
)


@dataclass(frozen=True)
class Frozen(Check):
    """Are the weights of two checkpoints the same, or is the gradient zero while the loss is not?

    Source: an update changes every learnt number, except those of words and units that no batch uses.
    """

    share: float = 0.999  # of the learnt numbers that are the same bit for bit
    steps: float = 0.9  # of the steps of the second half with a gradient of 0
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 3
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "temperature-too-high", "not-finished", "margin-plateau", "complete-collapse", "hubness",
        "dimensional-collapse", "no-gradient", "scale-falling", "one-direction", "misaligned-pairs", "dead-tower",
        "shuffled-share", "duplicates",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        looked = False
        if patient.has(Parameters):
            parameters = patient.part(Parameters)
            looked = parameters.unchanged is not None
            if parameters.unchanged is not None and parameters.unchanged > self.share:
                return self._of_parameters(parameters, parameters.unchanged)
        if patient.has(Curve) and len(patient.part(Curve).column("grad_norm")):
            return self.of_curve(patient.part(Curve))
        if not looked:
            raise Missing(
                "it has neither checkpoints of two epochs nor a log with the gradient norm",
                "the gradient norm in the log",
            )
        return None

    def _of_parameters(self, parameters: Parameters, unchanged: float) -> Finding:
        before, after = parameters.epochs
        return self.finding(
            f"the model did not change from epoch {before} to epoch {after}",
            f"{unchanged:.1%} of the learnt numbers are bit-identical after {after - before} epochs.",
            (Evidence("share of learnt numbers that did not change", unchanged, self.share, (0, 0.9)),),
            _ADVICE,
        )

    def of_curve(self, curve: Curve) -> Finding | None:
        """Return the finding of a log."""
        norms = curve.column("grad_norm")
        half = norms[len(norms) // 2 :]
        half = half[np.isfinite(half)]
        if not len(half) or curve.level <= 1e-6 * max(abs(curve.start), 1e-12):
            return None
        share = float((half == 0).mean())
        if share < self.steps:
            return None
        return self.finding(
            "the gradient is zero",
            f"In {share:.0%} of the steps of the second half the gradient norm is 0, while the loss is "
            f"{curve.level:.4g}.",
            (Evidence("share of steps without a gradient", share, self.steps, (0, 0.5)),),
            _ADVICE,
        )
