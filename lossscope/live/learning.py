"""Does a running loop learn? Falling loss, recall above chance, a learning rate that still warms up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from .batch_numbers import MOST

_FALL = 0.01  # of the median loss between both halves of the newest steps, as a share
_NOISE = 3.0  # standard errors of that fall
_ABOVE = 1.5  # times the recall of guessing
_DEVIATIONS = 4.0  # of guessing
Floats = npt.NDArray[np.float64]


def learning_state(newest: Mapping[str, Floats], batch_size: int) -> Literal["learns", "warms up", "guesses"]:
    """Return whether a model learns, judged by its newest steps.

    Args:
        newest: columns of StepHistory.newest.
        batch_size: queries of a batch.
    """
    recall, chance = newest["train_recall"], newest["chance"]
    known = np.isfinite(recall) & np.isfinite(chance)
    if known.any():
        queries = known.sum() * min(batch_size, MOST)
        by_chance = float(chance[known].mean())
        if float(recall[known].mean()) > _ABOVE * by_chance + _DEVIATIONS * math.sqrt(by_chance / queries):
            return "learns"
    if _falls(newest["loss"]):
        return "learns"
    lr = newest["lr"][np.isfinite(newest["lr"])]
    if len(lr) > 1 and lr[-1] > lr[0] * (1 + 1e-6) and lr[-1] >= lr.max():
        return "warms up"
    return "guesses"


def _falls(loss: Floats) -> bool:
    loss = loss[np.isfinite(loss)]
    if len(loss) < 10:
        return False
    early, late = loss[: len(loss) // 2], loss[len(loss) // 2 :]
    fall = float(np.median(early) - np.median(late))
    deviation = 1.4826 * float(np.median(np.abs(late - np.median(late))))
    error = 1.2533 * deviation * math.sqrt(1 / len(early) + 1 / len(late))
    return fall > max(_FALL * abs(float(np.median(early))), _NOISE * error)
