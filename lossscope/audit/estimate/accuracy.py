"""How good is the threshold? Precision and recall of the mask, and the fit of probabilities to labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .calibration import Doubles
from .rates import Estimate, Quantity


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a mask that leaves out pairs of at least the threshold, in random batches."""

    threshold: float
    hidden: float  # share of the negatives that are left out
    precision: Estimate  # share of these that match
    recall: Estimate  # share of the false negatives that are left out


def precision(above: npt.NDArray[np.bool_]) -> Quantity:
    """Return the expected share of matches among the pairs left out; NaN if no pair is left out."""
    number = int(above.sum())
    return lambda p: float(p[above].sum()) / number if number else float("nan")


def recall(above: npt.NDArray[np.bool_]) -> Quantity:
    """Return the expected share of the false negatives that are left out; NaN without false negatives."""

    def share(p: Doubles) -> float:
        whole = float(p.sum())
        return float(p[above].sum()) / whole if whole > 0 else float("nan")

    return share


def calibration_error(p: Doubles, answers: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Return the mean |mean probability − share of matches| over bins of equally many pairs.

    Source: Naeini et al. 2015 (expected calibration error), with bins of equal size.
    """
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return float(sum(abs(p[part].mean() - answers[part].mean()) * len(part) for part in parts) / len(order))
