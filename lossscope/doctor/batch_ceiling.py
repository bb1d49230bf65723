"""Is the loss so low that larger batches could teach more?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import Batches
from .parts.patient import Patient


@dataclass(frozen=True)
class BatchCeiling(Check):
    """Is log B − loss, the bound on mutual information, within 0.1 of log B, its largest value?

    Source: van den Oord et al. 2018, eq. 5; Poole et al. 2019.
    """

    near: float = 0.1  # nats
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 81

    def examine(self, patient: Patient) -> Finding | None:
        batches = patient.part(Batches)
        batches.require_softmax(patient.objective_spec)
        if batches.loss >= self.near:
            return None
        size = batches.batch_size
        return self.finding(
            f"in-batch negatives are too easy at batch size {size}",
            f"The loss is {batches.loss:.3g}, so log B − loss is {math.log(size) - batches.loss:.3g} of at most "
            f"{math.log(size):.3g} nats. Larger batches or harder negatives could teach more.",
            (Evidence("loss in nats", batches.loss, self.near, (self.near, None)),),
            (Advice(f"Train with larger batches: --batch-size {4 * patient.batch_size}."),),
        )
