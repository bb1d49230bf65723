"""How far do two people agree beyond chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .rates import Estimate

_Z = 1.959963984540054  # standard deviations of the middle 95 % of a normal


@dataclass(frozen=True)
class Agreement:
    """The answers of two people to the pairs that both answered yes or no."""

    files: tuple[str, str]
    pairs: int
    alike: int
    kappa: Estimate  # NaN where it is not defined


def agreement(files: tuple[str, str], first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    """Return the agreement of two people.

    Args:
        files: of their answers.
        first: (n,) the answers of the first to the pairs that both answered.
        second: (n,) the answers of the second.
    """
    a, b = np.array(first, bool), np.array(second, bool)
    return Agreement(files, len(a), int((a == b).sum()), cohen_kappa(a, b))


def cohen_kappa(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> Estimate:
    """κ = (o − e) / (1 − e), o the share of pairs answered alike, e the share expected by chance.

    The interval is κ ± 1.96 standard errors of many pairs, within −1..1. κ is NaN where e = 1: both people gave a
    single answer to all pairs. If all pairs are answered alike, the standard error is 0, which few pairs cannot show:
    there is no interval.

    Source: Cohen 1960; Fleiss, Cohen & Everitt 1969 (standard error).
    """
    n = len(first)
    if n == 0:
        return Estimate(float("nan"))
    table = np.array([[np.sum((first == i) & (second == j)) for j in (False, True)] for i in (False, True)]) / n
    rows, columns = table.sum(1), table.sum(0)
    observed, expected = float(np.trace(table)), float(rows @ columns)
    if expected == 1:
        return Estimate(float("nan"))
    kappa = (observed - expected) / (1 - expected)
    if observed == 1:
        return Estimate(kappa)
    diagonal = sum(table[i, i] * ((1 - expected) - (rows[i] + columns[i]) * (1 - observed)) ** 2 for i in (0, 1))
    off = sum(table[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1)) * (1 - observed) ** 2
    rest = (observed * expected - 2 * expected + observed) ** 2
    error = float(np.sqrt(max(diagonal + off - rest, 0) / n)) / (1 - expected) ** 2
    return Estimate(kappa, max(kappa - _Z * error, -1.0), min(kappa + _Z * error, 1.0))
