"""Do a few dimensions carry the variance and hide the others from retrieval?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment, DirectionAlignment
from .parts.items import Items
from .parts.patient import Patient
from .parts.remedies import whitened
from .parts.spectrum import Spectrum

_WHITE = "both sides whitened together"


@dataclass(frozen=True)
class Anisotropy(Check):
    """Does recall return when the vectors are whitened? Then a few wide directions had hidden the others.

    Whitening lowers the recall of trained models, whose wide directions matter most.
    Source: Mu & Viswanath 2018, all but the top; Su et al. 2021, whitening of sentence embeddings.
    """

    gain: float = 2.0  # recall@1 after whitening over recall@1 before; at most 1 in the wall, 1.5 in a model elsewhere
    points: float = 0.05  # of recall@1 that whitening adds, at least
    rank: float = 0.5  # effective rank over its null, up to which directions are few
    collapsed: float = 0.9  # mean cosine of both sides, at the recall of guessing: that is complete-collapse
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 38
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "gain")
    explains: ClassVar[tuple[str, ...]] = ("hubness", "cone", "dimensional-collapse", "modality-gap", "no-learning")

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        sides, before = patient.part(Spectrum).sides, patient.part(Alignment)
        side = min(sides, key=lambda side: side.share)
        is_collapsed = before.recall_at_chance and min(side.mean_cosine for side in sides) >= self.collapsed
        if side.share > self.rank or is_collapsed:
            patient.signals[self.id()] = 1.0
            return None
        items = patient.part(Items)
        after = Alignment.of(patient, replace(items, split=whitened(items.split)))
        pairs = list(zip(before.directions, after.directions, strict=True))
        low, white = max(pairs, key=lambda pair: pair[1].recall - pair[0].recall)
        patient.signals[self.id()] = white.recall / max(low.recall, 1 / before.pairs)
        if white.recall < max(self.gain * low.recall, low.recall + self.points):
            return None
        return self._found(side.name, side.rank, side.d, side.share, low, white)

    def _found(
        self, name: str, rank: float, d: int, share: float, low: DirectionAlignment, white: DirectionAlignment
    ) -> Finding:
        return self.finding(
            f"the {name} spread over {rank:.0f} of {d} directions; the narrow directions hold the pairs",
            f"Recall@1 {low.label} is {low.recall:.1%}, and {white.recall:.1%} when whitening makes all directions "
            "equally wide: a few wide directions decide every cosine.",
            (
                Evidence("recall@1 after whitening / before", white.recall / max(low.recall, 1e-3), self.gain, (0, 1)),
                Evidence("effective rank / that of isotropic vectors", share, None, (0.06, 1)),
            ),
            (
                Advice("Whiten both sides with one map before retrieval, or subtract the widest directions.",
                       remedy=_WHITE),
                Advice("Look for input features or units on a larger scale, and standardise them before training."),
            ),
        )  # fmt: skip

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Whiten both sides."""
        return (Remedy(_WHITE, whitened(patient.part(Items).split)),)
