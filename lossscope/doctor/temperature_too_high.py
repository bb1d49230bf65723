"""Do all negatives of a query weigh the same?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from lossscope.core.similarity import pair_mask
from lossscope.objectives.base import Objective

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import Batches
from .parts.patient import Patient

_PAIRS = 2048  # of perfect embeddings, from which larger batches follow


@dataclass(frozen=True)
class TemperatureTooHigh(Check):
    """Does the softmax weigh all negatives alike, and would it even if every positive had cosine 1?

    The loss of perfect embeddings (cosine 1 with the positive, 0 with all others) is log(1 + (B − 1) e^(−1 / tau)).
    Source: Wang & Liu 2021, the temperature as a choice between uniformity and tolerance.
    """

    effective: float = 0.5  # N_eff over the number of negatives
    floor: float = 0.5  # loss of perfect embeddings over log B
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 32
    explains: ClassVar[tuple[str, ...]] = ("not-finished",)

    def examine(self, patient: Patient) -> Finding | None:
        batches = patient.part(Batches)
        batches.require_softmax(patient.objective_spec)
        patient.require_trained()
        share, floor = batches.effective_share, self._floor(batches.objective, patient.batch_size)
        patient.signals[self.id()] = min(share, floor)
        if share <= self.effective or floor <= self.floor:
            return None
        return self.finding(
            "the temperature is too high: all negatives weigh the same",
            f"{share:.0%} of the negatives carry the weight of a query, and even perfect embeddings would have "
            f"{floor:.0%} of the loss of guessing: hard negatives are not told from easy ones.",
            (
                Evidence("N_eff / number of negatives", share, self.effective, (0, 0.5)),
                Evidence("loss of perfect embeddings / log B", floor, self.floor, (0, 0.5)),
            ),
            (
                Advice(
                    "See N_eff for other temperatures.",
                    patient.cocos_command("ntxent:tau=0.02..0.5/6"),
                ),
                Advice(
                    "Train at tau 0.05 to 0.1, or learn it.", patient.train_command("--objective", "ntxent:tau=0.07")
                ),
            ),
        )

    @staticmethod
    def _floor(objective: Objective, size: int) -> float:
        """Return the loss of perfect embeddings over log B; e^loss − 1 is a sum over negatives, all alike."""
        pairs = min(size, _PAIRS)
        perfect = objective(torch.eye(pairs), pair_mask(torch.arange(pairs))).values
        assert perfect is not None
        negatives = math.expm1(float(perfect.mean())) * (size - 1) / (pairs - 1)
        return math.log1p(negatives) / math.log(size)
