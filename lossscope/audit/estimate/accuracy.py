"""How good is the threshold: precision and recall of what the mask leaves out, and how well probabilities fit labels."""

from __future__ import annotations

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


def accuracy(pairs: BatchPairs, calibration: Calibration, threshold: float) -> Accuracy:
    """Return what a threshold leaves out, as the probabilities say.

    Intervals are of draws of the weights; NaN where nothing is left out.
    """
    p = pairs.probabilities(calibration)
    above = p >= threshold

    def both(one: Doubles) -> tuple[float, float]:
        inside = float(one[above].sum())
        precision = inside / int(above.sum()) if above.any() else float("nan")
        return precision, inside / max(float(one.sum()), 1e-300)

    value = both(p)
    draws = (
        [both(pairs.probabilities(calibration, b)) for b in calibration.draws] if calibration.draws is not None else []
    )
    columns = list(zip(*draws, strict=True)) if draws else [None, None]
    precision, recall = (
        Estimate(one, *(interval(column) if column is not None and above.any() else (None, None)))
        for one, column in zip(value, columns, strict=True)
    )
    return Accuracy(threshold, float(above.mean()), precision, recall)


def calibration_error(p: Doubles, answers: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Return the mean |mean probability − share of matches| over bins of equally many pairs.

    Source: Naeini et al. 2015 (expected calibration error), with bins of equal size.
    """
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return float(sum(abs(p[part].mean() - answers[part].mean()) * len(part) for part in parts) / len(order))
