"""Do all items have one embedding?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ._recipe_advice import decay_advice, least_advice, rate_advice, warmup_advice
from .base import Advice, Check, Evidence, Finding, Missing, Remedy, Severity, TooLittle
from .logs.base import TrainingLog
from .parts.alignment import Alignment
from .parts.items import Items
from .parts.patient import LEAST_STEPS, Patient
from .parts.remedies import centred
from .parts.spectrum import Spectrum

_ADVICE = Advice("Train again with a tenth of the learning rate, a warm-up and less weight decay.")


@dataclass(frozen=True)
class CompleteCollapse(Check):
    """Do different items of both sides have nearly one embedding, so that positives are found no better than by chance?

    An untrained network can have a mean cosine of 0.99 and still tell items apart, so the check reads recall, too.
    Source: Chen & He 2021 (SimSiam), figure 2; Xuan et al. 2020 for triplets with the hardest negative.
    """

    mean_cosine: float = 0.9  # of different items; no trained model at chance in the calibration had 0.6
    auc: float = 0.7  # below which positives are hardly above negatives, as for no-learning; trained models have 0.8
    apart: float = 0.02  # of the mean similarities of positives and hardest negatives of a log, at most
    counted: float = 0.9  # share of the other pairs of a batch that count as negatives: all weigh the same
    rows: int = 2  # last rows of a log that have these numbers
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 10
    healthy: ClassVar[tuple[str, str] | None] = ("below", "mean_cosine")
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "hubness", "dimensional-collapse", "cone", "modality-gap", "no-gradient", "duplicates",
        "temperature-too-high", "one-direction", "half-precision", "not-finished", "hard-negatives-too-hard", "frozen",
        "misaligned-pairs", "margin-plateau", "batch-norm-leak", "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        if not patient.has(Alignment) and patient.has(TrainingLog):
            return self._of_log(patient, patient.part(TrainingLog))
        sides, alignment = patient.part(Spectrum).sides, patient.part(Alignment)
        lowest = min(side.mean_cosine for side in sides)
        is_separated = alignment.best.auc >= self.auc or not alignment.recall_at_chance
        patient.signals[self.id()] = min(lowest, 0.0) if is_separated else lowest
        if is_separated or lowest < self.mean_cosine:
            return None
        best = alignment.best
        each = " and ".join(f"{side.mean_cosine:.4f} for {side.name}" for side in sides)
        return self.finding(
            "all items have nearly the same embedding",
            f"The mean cosine of different items is {each}, and positives rank at chance level: the model does not "
            "tell its inputs apart.",
            (
                *(
                    Evidence(f"mean cosine of different {side.name}", side.mean_cosine, self.mean_cosine, (-0.1, 0.8))
                    for side in sides
                ),
                *(Evidence(f"√d · std of {side.name}", side.spread, None, (0.3, 1)) for side in sides),
                Evidence(f"recall@1 {best.label} (by chance {best.chance:.3g})", best.recall, None, (None, None)),
            ),
            (
                *least_advice(patient),
                *decay_advice(patient),
                *rate_advice(patient),
                _ADVICE,
                *warmup_advice(patient),
            ),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Subtract the mean of each side."""
        split = patient.part(Items).split
        return () if split.images is None else (Remedy("with the mean of each side subtracted", centred(split)),)

    def _of_log(self, patient: Patient, log: TrainingLog) -> Finding | None:
        names = ["positive", "hardest_negative", "counted_negatives"]
        size = patient.stated_batch_size or log.batch_size
        if size is None or not {*names} <= {*log.steps}:
            raise Missing("its log has no similarities and counts of negatives, with the batch size")
        rows = log.steps[log.steps["step"] >= LEAST_STEPS][names].dropna().tail(self.rows)
        if len(rows) < self.rows:
            raise TooLittle(f"its log has fewer than {self.rows} rows with similarities from step {LEAST_STEPS} on")
        lowest = float(rows[names[:2]].to_numpy().min())
        gap = float((rows["positive"] - rows["hardest_negative"]).abs().max())
        share = float(rows["counted_negatives"].min()) / max(size - 1, 1)
        if lowest < self.mean_cosine or gap > self.apart or share < self.counted:
            return None
        return self.finding(
            "all items have nearly the same embedding",
            f"At the end of the log, positives and hardest negatives have a similarity of at least {lowest:.3f}, and "
            f"{share:.0%} of the other pairs of a batch count as negatives: the model does not tell its inputs apart.",
            (
                Evidence("similarity of positives and hardest negatives", lowest, self.mean_cosine, (-0.1, 0.8)),
                Evidence("positive − hardest negative similarity, its size", gap, self.apart, (0.05, None)),
                Evidence("counted negatives / other pairs of a batch", share, self.counted, (0, 0.5)),
            ),
            (_ADVICE,),
        )
