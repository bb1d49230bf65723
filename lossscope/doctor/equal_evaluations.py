"""Are several evaluations equal to the last digit?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd

from .base import Advice, Check, Evidence, Finding, Missing, Severity, TooLittle
from .logs.base import TrainingLog
from .logs.name_parts import is_of_ranks
from .parts.curve import finite_median
from .parts.patient import Patient

_BOUNDS = (0.0, 1.0, 100.0)  # of scores; equal scores there prove nothing


@dataclass(frozen=True)
class EqualEvaluations(Check):
    """Are evaluations in a row equal in every number, to the last digit, while the model is trained?

    An accuracy over few items has few values, and a rounded number may repeat: these do not count. With few queries, a
    ranking may stay the same for a while.
    Source: an update of the weights changes the last digits of every score, unless it counts few items.
    """

    least: int = 3  # evaluations in a row, of a number of similarities: a loss, a correlation, a threshold
    of_ranks: int = 5  # of ranks alone, such as nDCG
    digits: int = 9  # significant ones of a number, below which it is rounded
    items: int = 2000  # largest n of a share k / n that has few values
    still: float = 0.01  # learning rate there over its highest, below which a trained model hardly moves
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 6
    healthy: ClassVar[tuple[str, str] | None] = ("below", "least")
    explains: ClassVar[tuple[str, ...]] = ("not-finished", "overfitting")

    def examine(self, patient: Patient) -> Finding | None:
        log = patient.part(TrainingLog)
        names = [name for name in map(str, log.scores) if name != "step"]
        if not names or len(log.scores) < self.least:
            kind = TooLittle if len(log.scores) else Missing
            raise kind(f"its log has fewer than {self.least} evaluations", "evaluations in the log")
        first, last = longest_run(log.scores[names])
        number = last - first + 1
        patient.signals[self.id()] = float(number)
        row = log.scores.iloc[last]
        telling = {name: float(row[name]) for name in names if self.is_telling(float(row[name]))}
        needed = self.of_ranks if all(map(is_of_ranks, telling)) else self.least
        if number < needed or not telling or self._is_still(log, float(log.scores["step"].iloc[first])):
            return None
        name, value = next(iter(telling.items()))
        steps = log.scores["step"]
        return self.finding(
            f"{number} evaluations in a row are equal to the last digit",
            f"From step {steps.iloc[first]:,.0f} to {steps.iloc[last]:,.0f}, {name} is {value!r}"
            + (f", and all {len(names)} columns stay the same" if len(names) > 1 else "")
            + ". The evaluated model does not change: its weights are frozen, or another model is evaluated.",
            (
                Evidence("evaluations in a row that are equal", float(number), float(needed), (0, needed - 1)),
                Evidence("share of all evaluations", number / len(steps), None, (None, None)),
            ),
            (
                Advice(
                    "Check which weights the evaluator reads: those of the trained model, or those of a copy or "
                    "checkpoint."
                ),
                Advice(
                    "Compare a weight of the evaluated model before and after a step; look at requires_grad and lr."
                ),
            ),
        )

    def is_telling(self, value: float) -> bool:
        """Return whether a repeated value is no accident: not a bound, not rounded, not a share of few items."""
        if not math.isfinite(value) or value in _BOUNDS:
            return False
        text = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
        if len(text) < self.digits:
            return False
        share = abs(value) / (100 if abs(value) > 1 else 1)
        near = Fraction(share).limit_denominator(self.items)
        return abs(float(near) - share) > 0.6 * share * 10.0 ** -(len(text) - 1)

    def _is_still(self, log: TrainingLog, since: float) -> bool:
        """Return whether the learning rate is almost 0 from a step on, as at the end of a schedule."""
        if "lr" not in log.steps:
            return False
        rates, steps = log.steps["lr"].to_numpy(dtype=np.float64), log.steps["step"].to_numpy(dtype=np.float64)
        highest, there = np.nanmax(rates, initial=0.0), finite_median(rates[steps >= since])
        return there is not None and there < self.still * float(highest)


def longest_run(scores: pd.DataFrame) -> tuple[int, int]:
    """Return the first and the last row of the longest run of rows that are equal in all their columns."""
    values = scores.to_numpy(dtype=np.float64)
    equal = [
        bool((np.isfinite(before) & np.isfinite(after)).any())
        and np.array_equal(before[np.isfinite(before)], after[np.isfinite(before)])
        for before, after in pairwise(values)
    ]
    best, start = (0, 0), 0
    for row, is_equal in enumerate([*equal, False], 1):
        if row - 1 - start > best[1] - best[0]:
            best = start, row - 1
        start = start if is_equal else row
    return best
