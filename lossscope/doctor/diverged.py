"""Has the loss left its band upwards for good?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.registry import build

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.curve import Curve, Floats
from .parts.patient import Patient
from .parts.seams import falls_again

_MANY = 3.0  # times of the progress, above which its share says nothing
_INSIDE = 0.1  # of the rise above the best level, up to which the loss is in its band


@dataclass(frozen=True)
class Diverged(Check):
    """Is the loss at the end far above what it had reached, and does it stay there?

    Source: Wortsman et al. 2023, training instabilities at small scale.
    """

    noise: float = 6.0  # robust deviations of the loss above the best level
    lost: float = 0.3  # of the way from the start to the best level that is lost again
    rise: float = 0.05  # above the best level, as a share of the loss at the start
    learnt: float = 0.1  # fall to the best level, as a share of the loss at the start
    fell: float = 0.05  # of it, as a share of the rise that follows
    queue: float = 3.5  # loss at the end over that of guessing in a batch; of a queue at most log 65,537 / log 32 = 3.2
    stayed: float = 0.2  # of the log, from its start, that the loss stays at its best level: a queue fills at once
    near: float = 0.005  # of the loss at the end to that of guessing, where it began below it, as a share
    still: float = 0.002  # noise of it there, as a share: all embeddings are one
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 4
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "lost")
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
        row = self._row(curve, smooth, window, low + _INSIDE * (last - low))
        if falls_after_peak(curve, best * window, last - low):
            return None
        if row < self.stayed * len(curve.loss) and not self._had_learnt(curve, smooth, best, last):
            return None
        jump = build("findings", "seam").jump_of(curve)
        if jump is not None and abs(row - jump.row) <= 2 * window:
            return None  # that is the finding `seam`
        step = int(curve.steps_of_loss[row])
        why = f", {lost:.0%} of the way back to its start" if lost < _MANY else f"; it began at {curve.initial:.4g}"
        return self.finding(
            f"the loss left its band at step {step:,} and did not come back",
            f"The loss had reached {low:.4g} and is {last:.4g} at the end{why}.",
            (
                Evidence("share of the progress that is lost", lost, self.lost, (0, 0.1)),
                Evidence("loss above its best level, in deviations", float(above), self.noise, (0, 4)),
            ),
            (
                Advice("Train with a tenth of the learning rate and a clipped gradient."),
                Advice("Use beta2 = 0.95, a longer warm-up, and float32 in the softmax."),
            ),
        )

    def _had_learnt(self, curve: Curve, smooth: Floats, best: int, last: float) -> bool:
        """Return whether the loss reached its best level by learning, or only a collapse explains its end.

        While a queue of keys fills, as in MoCo, the loss rises from a low start to that of many candidates.
        """
        low = float(smooth[best])
        fall = max(float(np.median(curve.loss[:3])), float(smooth[: best + 1].max())) - low
        if fall >= self.learnt * abs(curve.initial) and fall >= self.fell * (last - low):
            return True
        if curve.log.is_of_batches or any(
            guess.is_exact or (guess.is_certain and last > self.queue * guess.value) for guess in curve.guesses
        ):
            return True
        guess = curve.nearest_guess(self.near)
        return guess is not None and curve.has_settled and curve.tail_noise < self.still * curve.level

    @staticmethod
    def _row(curve: Curve, smooth: Floats, window: int, band: float) -> int:
        """Return the first row of the first window from which all windows are above the band."""
        return min((int(np.flatnonzero(smooth <= band)[-1]) + 1) * window, len(curve.loss) - 1)


def falls_after_peak(curve: Curve, first: int, rise: float) -> bool:
    """Return whether the loss still falls slowly after its highest level behind a row.

    Args:
        curve: the loss.
        first: row where the search for the highest level begins.
        rise: of the loss; its fall is compared with it.
    """
    smooth, window = smoothed(curve.loss[first:])
    if not len(smooth):
        return False
    peak = first + int(smooth.argmax()) * window
    return falls_again(curve.loss[peak:], rise)


def smoothed(loss: Floats) -> tuple[Floats, int]:
    """Return medians of consecutive windows of a fortieth of the steps, 5 or more, and their length."""
    window = max(len(loss) // 40, 5)
    parts = [loss[start : start + window] for start in range(0, len(loss) - window + 1, window)]
    return np.array([np.median(part) for part in parts]), window
