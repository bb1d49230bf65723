"""Is the loss exactly 0 in most steps?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ._batches_or_log import of_batches_or_log
from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import Batches
from .parts.curve import Curve
from .parts.patient import Patient

_ADVICE = (
    Advice("Count the positives of a batch: if all labels differ there is none, so each class must come twice."),
    Advice(
        "Check the margins: on cosines a contrastive loss needs pos_margin = 1 and neg_margin = 0; the "
        "defaults 0 and 1 "
        "are for distances."
    ),
    Advice("Check whether both views are the same tensor, and whether the loss expects this distance."),
)


@dataclass(frozen=True)
class ZeroLoss(Check):
    """Is the loss exactly 0 in most steps, although nothing is learnt? Such steps have no gradient.

    A loss with a margin that falls to 0 step by step has converged and does not count.
    Source: pytorch-metric-learning issues 504 and 549.
    """

    share: float = 0.5  # of the steps
    early: float = 0.05  # of the log, at its start, that has as many zeros: no training converges so fast
    least: int = 20  # steps of that
    recall: float = 0.9  # logged recall at which nothing is left to learn
    perfect: float = 0.99  # recall in the batches of a dump, likewise
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 8
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")
    explains: ClassVar[tuple[str, ...]] = (
        "no-gradient", "frozen", "no-learning", "not-finished", "margin-plateau", "hard-negatives-too-hard",
        "loss-spike",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        return of_batches_or_log(
            patient, lambda batches: self._of_batches(patient, batches), lambda curve: self._of_curve(patient, curve)
        )

    def _of_batches(self, patient: Patient, batches: Batches) -> Finding | None:
        zeros = float((batches.queries.loss == 0).mean())
        if zeros < 1 or batches.recall >= self.perfect:
            return None
        return self.finding(
            "the loss of every query is exactly 0",
            f"{patient.objective_spec or 'The loss'} costs nothing in batches of {batches.batch_size}, although only "
            f"{batches.recall:.0%} of the queries find their positive there: it has no gradient.",
            (
                Evidence("share of queries whose loss is 0", zeros, 1.0, (0, 0.99)),
                Evidence("recall@1 in a batch", batches.recall, self.perfect, (None, None)),
            ),
            _ADVICE[1:],
        )

    def _of_curve(self, patient: Patient, curve: Curve) -> Finding | None:
        is_zero = curve.loss == 0
        first = is_zero[: max(int(self.early * len(is_zero)), self.least)]
        patient.signals[self.id()] = float(min(is_zero.mean(), first.mean()))
        if is_zero.mean() < self.share or first.mean() < self.share or self._is_done(curve):
            return None
        return self.finding(
            f"the loss is exactly 0 in {is_zero.mean():.0%} of the steps, from the beginning",
            f"{int(is_zero.sum()):,} of {len(is_zero):,} steps have a loss of 0, and {int(first.sum())} of the first "
            f"{len(first)}. Such steps have no gradient, as when a batch has no positive, or every pair meets "
            "the margins.",
            (Evidence("share of steps whose loss is 0", float(is_zero.mean()), self.share, (0, self.share)),),
            _ADVICE,
        )

    def _is_done(self, curve: Curve) -> bool:
        """Return whether the logged recall is so high that nothing is left to learn."""
        for values in (curve.evaluations("val_recall"), curve.column("train_recall")):
            finite = values[np.isfinite(values)]
            if len(finite) and float(np.median(finite[-5:])) >= self.recall * (100 if finite.max() > 1 else 1):
                return True
        return False
