"""Do most queries have no negative left that teaches them anything?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.alignment import Alignment
from .parts.batches import EPS, Batches
from .parts.patient import Patient


@dataclass(frozen=True)
class NoGradient(Check):
    """Do most queries have no counted negative in their batch, although retrieval over more candidates fails?

    A converged model with high recall has no gradient either, and is healthy.
    Source: Bleeker & de Rijke 2022, C_0; facenet issue 124.
    """

    share: float = 0.9  # of the queries of a batch without a counted negative
    recall: float = 0.3  # among all compared candidates, below which retrieval fails
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 35
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        batches, alignment = patient.part(Batches), patient.part(Alignment)
        share, best = float(batches.queries.without.mean()), alignment.best
        patient.signals[self.id()] = share if best.recall < self.recall else 0.0
        if share <= self.share or best.recall >= self.recall or alignment.at_chance:
            return None
        return self.finding(
            f"{share:.0%} of the queries have no gradient",
            f"In batches of {batches.batch_size}, {share:.0%} of the queries have no negative with a weight above "
            f"{EPS}, yet among {alignment.pairs} candidates only {best.recall:.0%} of the queries find their positive: "
            "the batches are too easy.",
            (
                Evidence("share of queries without a counted negative (C_0)", share, self.share, (0, 0.9)),
                Evidence(f"recall@1 {best.label} among {alignment.pairs}", best.recall, self.recall, (0.3, 1)),
            ),
            (
                Advice(f"Train with larger batches: --batch-size {4 * patient.batch_size}."),
                Advice("Mine harder negatives: `lossscope mine`, or a memory of earlier batches."),
            ),
        )
