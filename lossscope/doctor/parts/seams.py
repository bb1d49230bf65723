"""At which step does the loss jump to another level, as when a training resumes without its optimizer's state?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .curve import Curve, Floats, finite_median, noise_of

_NEAR = 3  # logged rows beside a jump that have its levels
_SUDDEN = 0.6  # share of the change of level from one row to the next


@dataclass(frozen=True)
class Seam:
    """A jump of the loss, and what the learning rate did there."""

    row: int  # the first row of the losses on the new level
    step: int
    before: float  # median loss of the rows before it
    after: float  # median loss from this row on
    lr: tuple[float, float] | None  # before and after; None: it is not logged
    lasts: float  # share of the jump that is left after as many rows again
    falls: bool  # whether the loss falls again afterwards, as in a training that continues

    def has_lr_jump(self, ratio: float) -> bool:
        """Return whether the learning rate rises there by a ratio."""
        return self.lr is not None and self.lr[1] >= ratio * self.lr[0] and self.lr[1] > 0


def find_seam(curve: Curve, least: float) -> Seam | None:
    """Return the largest sudden rise of the loss after the first tenth of its rows; None where there is none.

    Args:
        curve: the loss.
        least: of the rise.
    """
    loss, window = curve.loss, max(len(curve.loss) // 40, 5)
    rises = np.full(len(loss), -np.inf)
    steps = (loss[1:-1] + loss[2:]) / 2 - loss[:-2]  # from row - 1, at its place, to row and row + 1
    candidates = np.flatnonzero(steps >= _SUDDEN * least) + 1
    for row in candidates[(candidates >= max(len(loss) // 10, window)) & (candidates < len(loss) - 2 * window)]:
        before, after = (float(np.median(part)) for part in (loss[row - window : row], loss[row : row + window]))
        sudden = np.median(loss[row : row + _NEAR]) - np.median(loss[row - _NEAR : row])
        if after - before >= max(least, 1e-12) and min(sudden, steps[row - 1]) >= _SUDDEN * (after - before):
            rises[row] = after - before
    if not np.isfinite(rises).any():
        return None
    row = int(rises.argmax())
    before, after = float(np.median(loss[row - window : row])), float(np.median(loss[row : row + window]))
    later = float(np.median(loss[row + window : row + 2 * window]))
    return Seam(
        row, int(curve.steps_of_loss[row]), before, after, _rates(curve, row),
        (later - before) / (after - before), falls_again(loss[row:], after - before),
    )  # fmt: skip


def falls_again(loss: Floats, rise: float) -> bool:
    """Return whether the loss falls again in the last two thirds after a rise, by a twentieth of it and beyond noise.

    Args:
        loss: from the highest level on.
        rise: of the loss.
    """
    third = len(loss) // 3
    if third < 2:
        return False
    fall = float(np.median(loss[third : 2 * third]) - np.median(loss[-third:]))
    return fall >= 0.05 * rise and fall >= 3 * 1.25 * noise_of(loss) * np.sqrt(
        2 / third
    )  # 1.25: error of a median over that of a mean


def _rates(curve: Curve, row: int) -> tuple[float, float] | None:
    rates = curve.column("lr")
    if not len(rates):
        return None
    rates = rates[np.isfinite(curve.column("loss"))]
    before, after = finite_median(rates[row - _NEAR : row]), finite_median(rates[row : row + _NEAR])
    return None if before is None or after is None else (before, after)
