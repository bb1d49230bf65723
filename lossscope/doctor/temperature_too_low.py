"""Does one negative carry all the weight of a query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import Batches, finite_mean
from .parts.patient import Patient


@dataclass(frozen=True)
class TemperatureTooLow(Check):
    """Does the softmax put its weight on one negative while recall is far from done?

    Source: Wang & Liu 2021, the temperature as a choice between uniformity and tolerance.
    """

    effective: float = 2.0  # number of negatives that carry the weight, N_eff, below it
    top: float = 0.9  # mean share of the heaviest negative
    recall: float = 0.5  # in the batch, below which it is far from done
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 31
    explains: ClassVar[tuple[str, ...]] = ("no-gradient", "half-precision")

    def examine(self, patient: Patient) -> Finding | None:
        batches = patient.part(Batches)
        batches.require_softmax(patient.objective_spec)
        weighed = batches.queries.effective[np.isfinite(batches.queries.effective)]
        effective = float(np.median(weighed)) if len(weighed) else float("nan")
        top = finite_mean(batches.queries.top)
        patient.signals[self.id()] = top if batches.recall < self.recall else 0.0
        if not effective < self.effective or not top > self.top or batches.recall >= self.recall:
            return None
        return self.finding(
            "the temperature is too low: one negative carries the weight of a query",
            f"The heaviest negative has {top:.0%} of a query's weight, and {batches.recall:.0%} of the queries find "
            f"their positive in a batch of {batches.batch_size}: the loss acts as a hardest-negative loss would, and "
            "noise in single negatives becomes its gradient.",
            (
                Evidence("N_eff, negatives that carry the weight (median)", effective, self.effective, (2, None)),
                Evidence("share of the heaviest negative", top, self.top, (0, 0.9)),
                Evidence(f"recall@1 in batches of {batches.batch_size}", batches.recall, self.recall, (0.5, 1)),
            ),
            (
                Advice(
                    "See N_eff for other temperatures.",
                    patient.cocos_command("ntxent:tau=0.01..0.2/6"),
                ),
                Advice("Begin at tau 0.07, or learn the scale and clamp it at 100."),
            ),
        )
