"""Does the loss jump up and return?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lossscope.registry import build

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.curve import Curve, Floats
from .parts.patient import Patient

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LossSpike(Check):
    """Are there steps whose loss is far above that of the steps around them?

    Source: Wortsman et al. 2023, who call 6 deviations above the running mean a spike; open_clip issue 1125.
    """

    deviations: float = 10.0  # above the median of the steps around, in robust deviations
    rise: float = 0.25  # above it, as a share of the loss at the start, or of guessing where that is known and higher
    above: float = 0.6  # above it, as a share of itself
    huge: float = 1e4  # above the loss around, as a ratio: no unstable training jumps so far and returns
    same: float = 0.5  # spread of such spikes in powers of ten, at most
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 50
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "rise")

    def examine(self, patient: Patient) -> Finding | None:
        curve = patient.part(Curve)
        height, base = heights(curve.loss)
        noise = max(_deviation(np.abs(height)), 1e-9)
        unit = max(abs(curve.initial), min((guess.value for guess in curve.guesses if guess.is_certain), default=0.0))
        warm = len(curve.loss) // 10
        is_spike = (height > self.deviations * noise) & (height > self.rise * unit)
        is_spike &= (height > self.above * np.abs(base)) & (base < unit)
        is_spike[:warm] = False
        if (seam := build("findings", "seam").jump_of(curve)) is not None:
            # a jump to another level is the finding `seam`
            is_spike[max(seam.row - _half(curve.loss), 0) : seam.row + _half(curve.loss)] = False
        patient.signals[self.id()] = float((height / max(unit, 1e-12))[warm:].max(initial=0.0))
        if not is_spike.any():
            return None
        at = int(np.argmax(np.where(is_spike, height, -np.inf)))
        steps = curve.column("step")[np.isfinite(curve.column("loss"))]
        number = int(np.sum(np.diff(np.concatenate([[0], is_spike.astype(int)])) == 1))
        if (constant := self._of_division(curve, is_spike, base)) is not None:
            return constant
        return self.finding(
            f"the loss jumps up {number} time{'s' if number > 1 else ''}",
            f"At step {int(steps[at]):,} the loss is {curve.loss[at]:.4g}; the steps around it have {base[at]:.4g}.",
            (
                Evidence(
                    "height of the largest spike, in deviations", float(height[at] / noise), self.deviations, (0, 6)
                ),
                Evidence("number of spikes", float(number), 0, (0, 0)),
            ),
            (
                Advice("Lower the learning rate or use beta2 = 0.95: the second moment lags behind the gradient."),
                Advice(
                    "Clip the gradient (1.0), and look at the batch of that step, which LossScope(recorder=100) keeps."
                ),
            ),
        )

    def _of_division(self, curve: Curve, is_spike: Bools, base: Floats) -> Finding | None:
        """Return the finding of spikes of one value, orders of magnitude above the others: a division by almost 0."""
        ratios = curve.loss[is_spike] / np.maximum(np.abs(base[is_spike]), 1e-12)
        values = np.log10(np.abs(curve.loss[is_spike]))
        ratio, spread = float(np.median(ratios)), float(np.ptp(values))
        if ratio < self.huge or spread > self.same:
            return None
        value, number = float(np.median(curve.loss[is_spike])), int(is_spike.sum())
        return self.finding(
            f"the loss is {value:.3g} in {number} step{'s' if number > 1 else ''} and {np.median(base):.3g} "
            "around them",
            "These losses are larger by many orders of magnitude and nearly equal, as a sum that is divided "
            "by almost 0 "
            "in a batch without an active pair or a positive. Their mean over steps says nothing.",
            (
                Evidence("loss of these steps / loss around them", ratio, self.huge, (0, 100)),
                Evidence("number of these steps", float(number), 0, (0, 0)),
            ),
            (
                Advice(
                    "Divide by max(number of active pairs, 1), so that a batch without an active pair has a loss of 0."
                ),
                Advice("Log the number of active pairs, or of positives, of each batch: it is 0 in these steps."),
            ),
        )


def _deviation(sizes: Floats) -> float:
    """Return a robust standard deviation, from the median or from nine tenths of the heights, whichever is more.

    Losses of few queries that are nearly solved have long tails, which the median does not see.
    """
    return max(1.4826 * float(np.median(sizes)), float(np.quantile(sizes, 0.9)) / 1.6449)


def heights(loss: Floats) -> tuple[Floats, Floats]:
    """Return how far each loss is above the median of the steps around it, and that median."""
    half = _half(loss)
    padded = np.pad(loss, half, mode="edge")
    base = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)
    return loss - base, base


def _half(loss: Floats) -> int:
    """Return how many steps on either side of a step count as the steps around it."""
    return max(min(len(loss) // 40, 50), 5)
