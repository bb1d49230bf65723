"""Do all negatives of a query weigh the same?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lossscope.engine.loss_levels import Layout, perfect_losses
from lossscope.objectives.base import Objective

from ._recipe_advice import temperature_command
from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.batches import Batches
from .parts.other_temperatures import weighed_again
from .parts.patient import Patient
from .parts.vectors import largest_product

_PAIRS = 2048  # pairs of perfect embeddings; larger batches follow from them


@dataclass(frozen=True)
class TemperatureTooHigh(Check):
    """Does the softmax weigh all negatives alike, and would it even if every positive had cosine 1?

    The loss of perfect embeddings (cosine 1 with the positive, 0 with all others) is log(1 + (B − 1) e^(−1 / tau)).
    If the loss takes products of rows of any length, that length is a temperature, too.
    Source: Wang & Liu 2021, the temperature as a choice between uniformity and tolerance.
    """

    effective: float = 0.5  # N_eff over the number of negatives
    floor: float = 0.5  # loss of perfect embeddings over log B
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 32
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "floor")
    explains: ClassVar[tuple[str, ...]] = ("not-finished",)

    def examine(self, patient: Patient) -> Finding | None:
        batches = patient.part(Batches)
        batches.require_softmax(patient.objective_spec)
        patient.require_trained()
        share = batches.effective_share
        floor = min(self._floor(batches.objective, patient.batch_size, S) for S in {1.0, largest_product(patient)})
        patient.signals[self.id()] = min(share, floor)
        if share <= self.effective or floor <= self.floor:
            return None
        return self.finding(
            "the temperature is too high: all negatives weigh the same",
            f"{share:.0%} of the negatives carry the weight of a query, and even perfect embeddings would have "
            f"{floor:.0%} of the loss of guessing: hard and easy negatives weigh the same.",
            (
                Evidence("N_eff / number of negatives", share, self.effective, (0, 0.5)),
                Evidence("loss of perfect embeddings / log B", floor, self.floor, (0, 0.5)),
            ),
            (
                Advice(
                    "See N_eff for other temperatures.",
                    patient.source_command("cocos", "--objective", "ntxent:tau=0.02..0.5/6"),
                ),
                Advice("Train at tau 0.05 to 0.1, or learn it.", temperature_command(patient, batches.objective)),
            ),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Weigh the same batches at the temperature that fits them best."""
        return weighed_again(patient)

    @staticmethod
    def _floor(objective: Objective, size: int, similarity: float = 1.0) -> float:
        """Return the loss of perfect embeddings over log B; e^loss − 1 is a sum over equal negatives.

        Args:
            objective: of the training.
            size: pairs of a batch.
            similarity: of a perfect pair, 1 of cosines.
        """
        pairs = min(size, _PAIRS)
        perfect = perfect_losses(objective, Layout(pairs), positive=similarity)
        assert perfect is not None  # of a softmax
        negatives = math.expm1(float(perfect.mean())) * (size - 1) / (pairs - 1)
        return math.log1p(negatives) / math.log(size)
