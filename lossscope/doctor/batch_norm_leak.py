"""Does batch norm show a query which candidate is its positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.patient import Patient
from .parts.train_mode import TrainMode


@dataclass(frozen=True)
class BatchNormLeak(Check):
    """Is recall in a batch far higher with the batch's own statistics than with the running statistics?

    Query and positive share the statistics of their batch, which can tell them apart from the negatives; or the running
    statistics do not fit the data.
    Source: He et al. 2020 (MoCo), section 3.3; Chen et al. 2020 (SimCLR), section 2.1.
    """

    gap: float = 0.2  # of recall@1
    ratio: float = 1.5  # of both
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 6
    healthy: ClassVar[tuple[str, str] | None] = ("below", "gap")
    explains: ClassVar[tuple[str, ...]] = (
        "overfitting", "no-learning", "hubness", "complete-collapse", "dead-tower", "misaligned-pairs", "one-direction",
        "dimensional-collapse", "shuffled-share", "temperature-too-low", "no-gradient", "cone", "modality-gap",
        "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        modes = patient.part(TrainMode)
        patient.signals[self.id()] = modes.training - modes.evaluation
        if modes.training - modes.evaluation < self.gap or modes.training < self.ratio * modes.evaluation:
            return None
        return self.finding(
            f"recall in a batch is {modes.training:.0%} in training mode and {modes.evaluation:.0%} in evaluation mode",
            f"The same inputs rank differently when the {modes.layers} batch-norm layers use the statistics of their "
            f"batch of {modes.batch_size}: the loss sees what retrieval does not.",
            (
                Evidence(
                    "recall@1 training − evaluation mode", modes.training - modes.evaluation, self.gap, (-0.1, 0.2)
                ),
                Evidence("recall@1 in evaluation mode", modes.evaluation, None, (None, None)),
            ),
            (
                Advice("Use SyncBatchNorm, shuffle the batch between query and candidate tower, or use layer norm."),
                Advice("Check that running statistics are updated (momentum, model.train()) and saved."),
            ),
        )
