"""Is one side constant, whatever its input?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.alignment import Alignment
from .parts.patient import Patient
from .parts.spectrum import Spectrum
from .parts.vectors import Vectors


@dataclass(frozen=True)
class DeadTower(Check):
    """Is one side the same for every input while the other side is not?

    Source: a side without a gradient (detached, frozen, or with a dead activation) is a constant plus noise.
    """

    mean_cosine: float = 0.9  # of different items of the dead side, as for complete-collapse
    apart: float = 0.2  # 1 − mean cosine of the dead side over that of the other side, at most: a constant and noise
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 11
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "one-direction", "hubness", "dimensional-collapse", "cone", "modality-gap", "duplicates",
        "temperature-too-high", "no-gradient", "misaligned-pairs", "margin-plateau", "not-finished", "non-finite",
        "hard-negatives-too-hard", "half-precision", "not-normalised", "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        zero = self._zero(patient)
        if zero is not None:
            return zero
        patient.require_trained()
        sides, alignment = patient.part(Spectrum).sides, patient.part(Alignment)
        if len(sides) < 2:
            raise Missing("it is one set, which one tower encodes")
        alive, dead = sorted(sides, key=lambda side: side.mean_cosine)
        is_dead = dead.mean_cosine >= self.mean_cosine and 1 - dead.mean_cosine <= self.apart * (1 - alive.mean_cosine)
        if not (is_dead and alive.mean_cosine < self.mean_cosine and alignment.at_chance):
            return None
        return self._found(dead.name, dead.mean_cosine, alive.name, alive.mean_cosine)

    def _zero(self, patient: Patient) -> Finding | None:
        """Return the finding where one side is all zeros."""
        if not patient.has(Vectors):
            return None
        facts = patient.part(Vectors).facts
        zero = [side for side in facts if side.zero == side.n]
        if len(facts) < 2 or len(zero) != 1:
            return None
        other = next(side for side in facts if side is not zero[0])
        return self._found(zero[0].name, 1.0, other.name, None)

    def _found(self, dead: str, cosine: float, alive: str, other: float | None) -> Finding:
        beside = "" if other is None else f" (different {alive}: {other:.2f})"
        return self.finding(
            f"the embeddings of the {dead} do not depend on the input",
            f"Different {dead} have a mean cosine of {cosine:.4f}{beside}: one tower gives a constant, and positives "
            "rank at chance level.",
            (
                Evidence(f"mean cosine of different {dead}", cosine, self.mean_cosine, (-0.1, 0.8)),
                *([] if other is None else [Evidence(f"mean cosine of different {alive}", other, None, (-0.1, 0.8))]),
            ),
            (
                Advice(
                    f"Check that the tower of the {dead} gets a gradient (requires_grad, detach(), torch.no_grad()) "
                    "and that the optimiser has its parameters."
                ),
                Advice(
                    "Give this tower its own learning rate, and look for activations that are zero for every input."
                ),
            ),
        )
