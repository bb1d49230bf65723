"""Do all items have one embedding?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment
from .parts.items import Items
from .parts.patient import Patient
from .parts.remedies import centred
from .parts.spectrum import Spectrum


@dataclass(frozen=True)
class CompleteCollapse(Check):
    """Do different items of both sides have nearly one embedding, so that positives are found no better than by chance?

    An untrained network can have a mean cosine of 0.99 and tell items apart, so recall is looked at, too.
    Source: Chen & He 2021 (SimSiam), figure 2; Xuan et al. 2020 for triplets with the hardest negative.
    """

    mean_cosine: float = 0.9  # of different items; nothing at chance in the calibration that was trained had 0.6
    severity: ClassVar[Severity] = "error"
    place: ClassVar[int] = 10
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "hubness", "dimensional-collapse", "cone", "modality-gap", "no-gradient", "duplicates",
        "temperature-too-high", "one-direction", "half-precision", "not-finished", "hard-negatives-too-hard", "frozen",
        "misaligned-pairs", "margin-plateau", "batch-norm-leak", "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        sides, alignment = patient.part(Spectrum).sides, patient.part(Alignment)
        lowest = min(side.mean_cosine for side in sides)
        patient.signals[self.id()] = lowest if alignment.at_chance else min(lowest, 0.0)
        if not alignment.at_chance or lowest < self.mean_cosine:
            return None
        best = alignment.best
        each = " and ".join(f"{side.mean_cosine:.4f} for {side.name}" for side in sides)
        return self.finding(
            "all items have nearly the same embedding",
            f"The mean cosine of different items is {each}, and positives are found as by guessing: the model does not "
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
                Advice("Begin again with a tenth of the learning rate, and a warm-up of it."),
                Advice(
                    "With the hardest negative of a batch, train first with all negatives, then switch.",
                    patient.warmup_command() if _mines_hardest(patient) else None,
                ),
            ),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Subtract what all items of a side have in common."""
        split = patient.part(Items).split
        return () if split.images is None else (Remedy("with the mean of each side subtracted", centred(split)),)


def _mines_hardest(patient: Patient) -> bool:
    """Return whether it was trained with a loss of the hardest negative, which needs a warm-up."""
    return patient.objective_spec is not None and patient.objective.traits.needs_warmup
