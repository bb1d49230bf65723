"""Does batch norm tell a query which candidate is its own?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.patient import Patient
from .parts.train_mode import TrainMode


@dataclass(frozen=True)
class BatchNormLeak(Check):
    """Is recall of a batch far higher with the batch's own statistics than with the running ones?

    Statistics of the batch are shared by query and positive, and can tell them apart from the negatives; or the
    running statistics are not those of the data.
    Source: He et al. 2020 (MoCo), section 3.3; Chen et al. 2020 (SimCLR), section 2.1.
    """

    gap: float = 0.2  # of recall@1
    ratio: float = 1.5  # of both
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 6
    explains: ClassVar[tuple[str, ...]] = (
        "overfitting", "no-learning", "hubness", "complete-collapse", "dead-tower", "misaligned-pairs", "one-direction",
        "dimensional-collapse", "shuffled-share", "temperature-too-low", "no-gradient", "cone", "modality-gap",
        "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        one = patient.part(TrainMode)
        patient.signals[self.id()] = one.training - one.evaluation
        if one.training - one.evaluation < self.gap or one.training < self.ratio * one.evaluation:
            return None
        return self.finding(
            f"recall in a batch is {one.training:.0%} in training mode and {one.evaluation:.0%} in evaluation mode",
            f"The {one.layers} batch-norm layers give the same inputs another ranking with the statistics of their "
            f"batch of {one.batch_size}: the loss sees what retrieval does not.",
            (
                Evidence("recall@1 training − evaluation mode", one.training - one.evaluation, self.gap, (-0.1, 0.2)),
                Evidence("recall@1 in evaluation mode", one.evaluation, None, (None, None)),
            ),
            (
                Advice("Use SyncBatchNorm or shuffle the batch between query and candidate tower; or layer norm."),
                Advice("Look whether running statistics are updated (momentum, model.train()) and saved."),
            ),
        )
