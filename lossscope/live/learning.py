"""Does a running loop learn, by its loss, its recall above chance, and a learning rate that still warms up?"""

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
_RISE = 5.0  # standard errors of a median above the lowest median; among 50 medians, noise gives up to 4
Floats = npt.NDArray[np.float64]


State = Literal["learns", "falls", "warms up", "guesses"]


def learning_state(newest: Mapping[str, Floats], batch_size: int) -> State:
    """Return the state of learning from the newest steps: `falls` if only the loss improves.

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
        return "falls"
    lr = newest["lr"][np.isfinite(newest["lr"])]
    if len(lr) > 1 and lr[-1] > lr[0] * (1 + 1e-6) and lr[-1] >= lr.max():
        return "warms up"
    return "guesses"


def rises(loss: Floats, steps: int) -> bool:
    """Return whether the newest losses are above earlier losses by more than their noise.

    Args:
        loss: of all known steps, in order.
        steps: of each median.
    """
    loss = loss[np.isfinite(loss)]
    parts = [loss[max(end - steps, 0) : end] for end in range(len(loss), 0, -steps)]
    parts = [part for part in parts if len(part) >= min(steps, len(loss))]
    if len(parts) < 2:
        return False
    medians = [float(np.median(part)) for part in parts]
    lowest = int(np.argmin(medians))
    return medians[0] - medians[lowest] > _RISE * math.hypot(_error(parts[0]), _error(parts[lowest]))


def _error(loss: Floats) -> float:
    """Return the standard error of a median, from robust deviations."""
    return 1.2533 * 1.4826 * float(np.median(np.abs(loss - np.median(loss)))) / math.sqrt(len(loss))


def _falls(loss: Floats) -> bool:
    loss = loss[np.isfinite(loss)]
    if len(loss) < 10:
        return False
    early, late = loss[: len(loss) // 2], loss[len(loss) // 2 :]
    fall = float(np.median(early) - np.median(late))
    return fall > max(_FALL * abs(float(np.median(early))), _NOISE * math.sqrt(2) * _error(late))
