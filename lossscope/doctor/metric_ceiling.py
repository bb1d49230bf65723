"""Is a metric at a ceiling that says nothing about quality?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity, TooLittle
from .logs.base import TrainingLog
from .logs.name_parts import is_of_ranks
from .parts.curve import Floats
from .parts.patient import Patient

_BALANCED = math.sqrt(3 * 0.5 * 0.5)  # of Spearman, half of the pairs positive


@dataclass(frozen=True)
class MetricCeiling(Check):
    """Is an evaluated metric at the highest value that its data allow, so that it cannot tell models apart?

    Spearman's rho of a gold standard with two values, a share p of it positive, is at most sqrt(3 p (1 - p)), 0.866 at
    p = 0.5. Accuracy or recall of 100 % among few candidates says that the task is easy.
    Source: Spearman's rho with ties, whose ranks of two groups have this correlation with a perfect order.
    """

    least: int = 3  # last evaluations that have the metric
    near: float = 0.002  # of Spearman to its ceiling, where Pearson is not known
    below: float = 0.02  # of it, where Pearson is above it, as only where the gold standard has few values
    above: float = 0.03  # Pearson over Spearman: with as many values as items they differ by less
    full: float = 0.9995  # of a share that counts as 100 %
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 88

    def examine(self, patient: Patient) -> Finding | None:
        log = patient.part(TrainingLog)
        if len(log.scores) < self.least or log.scores.shape[1] < 2:
            kind = TooLittle if len(log.scores) else Missing
            raise kind(f"its log has fewer than {self.least} evaluations", "evaluations in the log")
        return self._of_ranks(log) or self._of_shares(log)

    def _of_ranks(self, log: TrainingLog) -> Finding | None:
        for name in map(str, log.scores):
            if "spearman" not in name.lower():
                continue
            last = self._last(log, name)
            if len(last) < self.least or float(np.ptp(last)) > self.near:
                continue
            value, scale = float(np.median(last)), 100.0 if last.max() > 1 else 1.0
            gap = _BALANCED - value / scale
            pearson = self._last(log, _pearson_of(name, log))
            is_above = len(pearson) > 0 and float(np.median(pearson) - value) / scale >= self.above
            if not -self.near <= gap <= (self.below if is_above else self.near):
                continue
            return self.finding(
                f"{name} stays at {value:.4g}, the ceiling of a gold standard with two values",
                f"If half of the pairs are positive and half are negative, Spearman is at most {_BALANCED:.3f}: "
                "at this "
                "ceiling it cannot tell models apart.",
                (Evidence(f"{name} below sqrt(3 p (1 - p)) at p = 0.5", gap, self.near, (None, None)),),
                (
                    Advice(
                        "Evaluate binary pairs with average precision or ROC AUC, and retrieval among many candidates."
                    ),
                ),
            )
        return None

    def _of_shares(self, log: TrainingLog) -> Finding | None:
        names = [str(name) for name in log.scores if is_of_ranks(str(name))]
        full = [name for name in names if self._is_full(self._last(log, name))]
        if not full:
            return None
        return self.finding(
            f"{full[0]} is 100 %",
            f"In the last {self.least} evaluations {', '.join(full[:3])} reached the ceiling: the task is too easy to "
            "tell models apart, as with few candidates or random negatives.",
            (
                Evidence(
                    f"{full[0]}, lowest of the last {self.least}", self._lowest(log, full[0]), self.full, (None, 1)
                ),
            ),
            (Advice("Evaluate recall@1 and nDCG@10 among all candidates of the corpus, or with mined negatives."),),
        )

    def _lowest(self, log: TrainingLog, name: str) -> float:
        last = self._last(log, name)
        return float(last.min()) / (100 if last.max() > 1 else 1)

    def _is_full(self, last: Floats) -> bool:
        return len(last) >= self.least and float(last.min()) >= self.full * (100 if last.max() > 1 else 1)

    def _last(self, log: TrainingLog, name: str | None) -> Floats:
        """Return the last finite numbers of a column."""
        values = log.scores[name].to_numpy(dtype=np.float64) if name is not None else np.zeros(0)
        finite: Floats = values[np.isfinite(values)][-self.least :]
        return finite


def _pearson_of(name: str, log: TrainingLog) -> str | None:
    """Return the column of Pearson's correlation beside one of Spearman's."""
    pearson = re.sub("spearman", "pearson", name, flags=re.IGNORECASE)
    return next((str(other) for other in log.scores if str(other).lower() == pearson.lower()), None)
