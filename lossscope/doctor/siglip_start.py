"""Does the bias of a sigmoid loss begin far from the prior of its batches?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .logs.base import TrainingLog
from .parts.learnt_scale import LearntScale
from .parts.patient import Patient, build_objective


@dataclass(frozen=True)
class SiglipStart(Check):
    """Is the initial bias far from log(p / (1 − p)), where p = 1 / B is the share of positives?

    Source: Zhai et al. 2023 (SigLIP), section 3.2, whose −10 fits B = 22,000; open_clip issue 650.
    """

    apart: float = 3.0  # of the bias, in logits: the first loss is then off by more than a factor of 20 per pair
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 34
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "apart")
    explains: ClassVar[tuple[str, ...]] = ("loss-spike",)

    def examine(self, patient: Patient) -> Finding | None:
        bias, size = self._bias(patient), self._batch_size(patient)
        prior = -math.log(size - 1)
        patient.signals[self.id()] = abs(bias - prior)
        if abs(bias - prior) <= self.apart:
            return None
        return self.finding(
            f"the bias begins at {bias:g}; the prior of batches of {size:,} is {prior:.1f}",
            f"1 in {size:,} pairs of a batch is positive, which is a logit of {prior:.2f}. From {bias:g} the "
            "first steps "
            "only learn the bias.",
            (Evidence("initial bias", bias, prior + math.copysign(self.apart, bias - prior),
                      (prior - self.apart, prior + self.apart)),),
            (Advice(f"Begin at the prior: bias = −log(B − 1) = {prior:.2f}.",
                    patient.train_command("--objective", f"siglip:bias={prior:.2f}")),),
        )  # fmt: skip

    @staticmethod
    def _bias(patient: Patient) -> float:
        """Return the bias at the start of training, from a log of its first steps or from its recipe."""
        if patient.has(LearntScale) and len(bias := patient.part(LearntScale).bias):
            if patient.part(LearntScale).is_start:
                return float(bias[0])
            raise Missing("its log begins after the first steps")
        spec = patient.recipe.get("objective")
        if not spec and patient.has(TrainingLog):
            spec = patient.part(TrainingLog).objective
        if not spec:
            raise Missing(
                "it has neither a recipe nor a log of the bias, so its initial bias is unknown",
                "a log of the learnt bias",
            )
        objective = build_objective(str(spec))
        if "bias" not in objective.learnable:
            raise Missing(f"{spec} has no learnt bias")
        return float(objective.learnable["bias"])

    @staticmethod
    def _batch_size(patient: Patient) -> int:
        size = patient.stated_batch_size
        if size is None and patient.has(TrainingLog):
            size = patient.part(TrainingLog).batch_size
        if size is None or size < 2:
            raise Missing("its batch size is unknown; set it with --batch-size", "the batch size (--batch-size)")
        return size
