"""Has the loss left its band upwards for good?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.curve import Curve, Floats
from .parts.patient import Patient

_INSIDE = 0.1  # of the rise above the best level, up to which the loss is in its band


@dataclass(frozen=True)
class Diverged(Check):
    """Is the loss at the end far above what it had reached, and does it stay there?

    Source: Wortsman et al. 2023, training instabilities at small scale.
    """

    noise: float = 6.0  # robust deviations of the loss above the best level
    lost: float = 0.3  # of the way from the start to the best level that is lost again
    rise: float = 0.05  # above the best level, as a share of the loss at the start
    severity: ClassVar[Severity] = "error"
    place: ClassVar[int] = 4
    explains: ClassVar[tuple[str, ...]] = (
        "loss-spike", "no-learning", "scale-falling", "complete-collapse", "margin-plateau", "overfitting",
        "not-finished",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        curve = patient.part(Curve)
        smooth, window = smoothed(curve.loss)
        best = int(smooth.argmin())
        low, last = float(smooth[best]), float(np.median(curve.loss[-window:]))
        above = (last - low) / max(curve.noise / np.sqrt(window), 1e-9 + 1e-3 * abs(low))
        lost = (last - low) / max(curve.start - low, 0.05 * abs(curve.start), 1e-12)
        after = smooth[best:]
        stays = len(after) > 2 and float(np.min(after[-max(len(after) // 3, 1) :])) > low + 0.5 * (last - low)
        patient.signals[self.id()] = float(lost) if above >= self.noise else 0.0
        if last - low < self.rise * abs(curve.initial):
            return None
        if above < self.noise or lost < self.lost or not stays or (curve.recall_rises and lost < 1):
            return None
        step = self._step(curve, smooth, window, low + _INSIDE * (last - low))
        return self.finding(
            f"the loss left its band at step {step:,} and did not come back",
            f"The loss had reached {low:.4g} and is {last:.4g} at the end, {lost:.0%} of the way back to its start.",
            (
                Evidence("share of the progress that is lost", lost, self.lost, (0, 0.1)),
                Evidence("loss above its best level, in deviations", float(above), self.noise, (0, 4)),
            ),
            (
                Advice("Train with a tenth of the learning rate and a clipped gradient."),
                Advice("Use beta2 = 0.95, a longer warm-up, and float32 in the softmax."),
            ),
        )

    @staticmethod
    def _step(curve: Curve, smooth: Floats, window: int, band: float) -> int:
        """Return the first step of the first window from which all windows are above the band."""
        first = (int(np.flatnonzero(smooth <= band)[-1]) + 1) * window
        return int(curve.column("step")[np.isfinite(curve.column("loss"))][min(first, len(curve.loss) - 1)])


def smoothed(loss: Floats) -> tuple[Floats, int]:
    """Return medians of consecutive windows of a fortieth of the steps, 5 or more, and their length."""
    window = max(len(loss) // 40, 5)
    parts = [loss[start : start + window] for start in range(0, len(loss) - window + 1, window)]
    return np.array([np.median(part) for part in parts]), window
