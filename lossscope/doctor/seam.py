"""Does the loss jump to another level at one step, as when a training is resumed?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.curve import Curve
from .parts.patient import Patient
from .parts.seams import Seam as Jump
from .parts.seams import find_seam

_STATE = (
    Advice(
        "Resume with the state of the optimizer and of the scheduler, not with the weights alone: "
        "trainer.train(resume_from_checkpoint=...), or load_state_dict of model, optimizer and scheduler."
    ),
    Advice("Compare the loss of the first resumed batch with the loss before it: if they differ, the weights differ."),
    Advice("Resume the order of the data, too, and keep the schedule's length: otherwise warm-up begins anew."),
)


@dataclass(frozen=True)
class Seam(Check):
    """Does the loss jump up at one step and stay on another level from there, with the learning rate or without it?

    A spike returns at once; a diverged loss does not fall again. A rate that rises without a jump of the loss, as in
    cyclic schedules and warm restarts, does not count, nor do jumps at every restart.
    Source: sentence-transformers issue 3756; Loshchilov & Hutter 2017, warm restarts.
    """

    lost: float = 0.2  # share of the progress since the start that the jump loses; restarts of a rate lose less
    deviations: float = 10.0  # of the loss between neighbouring steps, see loss-spike
    lasts: float = 0.4  # share of the jump that is left one window later; nothing of a spike
    returns: float = 0.3  # share of the progress that is lost at the end without a jump of the rate; see diverged
    rate: float = 1.5  # learning rate after the jump over the rate before; only a restart raises it at once
    restarts: int = 2  # rises of the learning rate that make a schedule
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 18
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "lost")
    explains: ClassVar[tuple[str, ...]] = ("not-finished",)

    def examine(self, patient: Patient) -> Finding | None:
        curve = patient.part(Curve)
        jump = self.jump_of(curve)
        patient.signals[self.id()] = 0.0 if jump is None else self._lost(curve, jump)
        return None if jump is None else self._found(curve, jump)

    def jump_of(self, curve: Curve) -> Jump | None:
        """Return the jump that is a finding; None where there is none."""
        jump = find_seam(curve, max(self.deviations * curve.noise, self.lost * 0.05 * abs(curve.initial)))
        if jump is None or jump.lasts < self.lasts or self._lost(curve, jump) < self.lost:
            return None
        if jump.has_lr_jump(self.rate):
            return None if self._rises_of_rate(curve) >= self.restarts else jump
        left = float(np.median(curve.loss[-max(len(curve.loss) // 10, 3) :])) - jump.before
        return jump if jump.falls or left < self.returns * self._progress(curve, jump) else None

    def _lost(self, curve: Curve, jump: Jump) -> float:
        return (jump.after - jump.before) / self._progress(curve, jump)

    @staticmethod
    def _progress(curve: Curve, jump: Jump) -> float:
        return max(curve.initial - jump.before, 0.05 * abs(curve.initial), 1e-12)

    def _rises_of_rate(self, curve: Curve) -> int:
        """Return how often the learning rate rises at once, after the first tenth of its rows."""
        rates = curve.column("lr")
        rates = rates[np.isfinite(rates)][len(rates) // 10 :]
        return int((rates[1:] >= self.rate * rates[:-1]).sum())

    def _found(self, curve: Curve, jump: Jump) -> Finding:
        evidence = [
            Evidence("share of the progress that is lost at the jump", self._lost(curve, jump), self.lost, (0, 0.1))
        ]
        with_rate = ""
        if jump.lr is not None and jump.lr[0] > 0:
            is_risen = jump.has_lr_jump(self.rate)
            threshold = self.rate if is_risen else None
            evidence.append(
                Evidence("learning rate after / before", jump.lr[1] / jump.lr[0], threshold, (None, self.rate))
            )
            with_rate = (
                f", where the learning rate rises from {jump.lr[0]:.3g} to {jump.lr[1]:.3g}"
                if is_risen
                else f"; the learning rate is {jump.lr[1]:.3g} before and after"
            )
        return self.finding(
            f"the loss jumps from {jump.before:.3g} to {jump.after:.3g} at step {jump.step:,}",
            f"Before step {jump.step:,} the loss is {jump.before:.4g}, from there "
            f"{jump.after:.4g}{with_rate}. This happens "
            "when a training resumes without its state, or when its data or its loss change.",
            tuple(evidence),
            _STATE,
        )
