"""How good is a threshold: precision and recall of what the mask leaves out; and how well do probabilities fit?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .calibration import Calibration, Doubles, interval
from .rates import BatchPairs, Estimate


@dataclass(frozen=True)
class Accuracy:
    """Of pairs with a probability of at least the threshold, in batches."""

    threshold: float
    hidden: float  # share of the negatives that are left out
    precision: Estimate  # share of these that match
    recall: Estimate  # share of the false negatives that are left out


def accuracies(pairs: BatchPairs, calibration: Calibration, thresholds: Sequence[float]) -> tuple[Accuracy, ...]:
    """Return what thresholds leave out, as the probabilities say.

    Intervals are of draws of the weights; NaN where nothing is left out.
    """
    p = pairs.probabilities(calibration)
    above = np.stack([p >= one for one in thresholds], 1)
    hidden, inside, whole = above.sum(0), p @ above, float(p.sum())
    draws = None
    if calibration.draws is not None:
        draws = pairs.sums(calibration, np.c_[above, np.ones(len(p))].astype(np.float64))
    found = []
    for place, threshold in enumerate(thresholds):
        n = int(hidden[place])
        precision = Estimate(float(inside[place]) / n if n else float("nan"))
        recall = Estimate(float(inside[place]) / whole if whole else float("nan"))
        if draws is not None and n:
            precision = Estimate(precision.value, *interval(draws[:, place] / n))
            recall = Estimate(recall.value, *interval(draws[:, place] / draws[:, -1]))
        found.append(Accuracy(threshold, n / len(p), precision, recall))
    return tuple(found)


def calibration_error(p: Doubles, answers: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Return the mean |mean probability − share of matches| over bins of equally many pairs.

    Source: Naeini et al. 2015 (expected calibration error), with bins of equal size.
    """
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return float(sum(abs(p[part].mean() - answers[part].mean()) * len(part) for part in parts) / len(order))
