"""Does one negative carry all the weight of a query?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.batches import Batches, finite_mean
from .parts.other_temperatures import OtherTemperatures, weighed_again
from .parts.patient import Patient


@dataclass(frozen=True)
class TemperatureTooLow(Check):
    """Does the softmax put its weight on one negative while recall is far from done?

    Source: Wang & Liu 2021, the temperature as a choice between uniformity and tolerance.
    """

    effective: float = 2.0  # N_eff, number of negatives that carry the weight, below which it is one
    top: float = 0.9  # mean share of the heaviest negative
    recall: float = 0.5  # in the batch, below which it is far from done; above it, the loss is above that of guessing
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 31
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "top")
    explains: ClassVar[tuple[str, ...]] = ("no-gradient", "half-precision")

    def examine(self, patient: Patient) -> Finding | None:
        batches = patient.part(Batches)
        batches.require_softmax(patient.objective_spec)
        weighed = batches.queries.effective[np.isfinite(batches.queries.effective)]
        effective = float(np.median(weighed)) if len(weighed) else float("nan")
        top = finite_mean(batches.queries.top)
        patient.signals[self.id()] = top if batches.recall < self.recall or batches.loss > batches.guess else 0.0
        is_worse = batches.loss > batches.guess  # than guessing, although positives are found
        if not effective < self.effective or not top > self.top or not (is_worse or batches.recall < self.recall):
            return None
        return self.finding(
            "the temperature is too low: one negative carries the weight of a query",
            f"The heaviest negative has {top:.0%} of a query's weight, and {batches.recall:.0%} of the queries find "
            f"their positive in a batch of {batches.batch_size}. The loss acts like a hardest-negative loss: noise in "
            "single negatives becomes its gradient.",
            (
                Evidence("N_eff, negatives that carry the weight (median)", effective, self.effective, (2, None)),
                Evidence("share of the heaviest negative", top, self.top, (0, 0.9)),
                Evidence(f"recall@1 in batches of {batches.batch_size}", batches.recall, self.recall, (0.5, 1)),
            ),
            (
                Advice(
                    "See N_eff for other temperatures.",
                    patient.source_command("cocos", "--objective", "ntxent:tau=0.01..0.2/6"),
                ),
                *_fitting(patient),
                Advice("Begin at tau 0.07, or learn the scale and clamp it at 100."),
            ),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Weigh the same batches at the temperature that fits them best."""
        return weighed_again(patient)


def _fitting(patient: Patient) -> tuple[Advice, ...]:
    if not patient.has(OtherTemperatures):
        return ()
    best = patient.part(OtherTemperatures).best
    return (Advice(f"Train at tau = {best:.2g}, where the loss of these batches is lowest."),)
