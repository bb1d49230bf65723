"""Do the embeddings use few of their dimensions?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.items import Items
from .parts.patient import Patient
from .parts.remedies import whitened
from .parts.spectrum import Spectrum


@dataclass(frozen=True)
class DimensionalCollapse(Check):
    """Is the effective rank of the centred embeddings far below that of isotropic vectors of the same n and d?

    For labelled items the bound is the number of classes, to which a good model collapses (neural collapse).
    Source: Jing et al. 2022; Garrido et al. 2023 (RankMe); Papyan et al. 2020 for classes.
    """

    share: float = 0.04  # of the null; models in the first plateau of their training have 0.055 and more
    share_of_unused: float = 0.15  # of the null, where most directions carry nothing
    used: float = 0.25  # share of the directions with a thousandth of the widest; trained models have 0.34 and more
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 40
    healthy: ClassVar[tuple[str, str] | None] = ("at least", "share_of_unused")
    explains: ClassVar[tuple[str, ...]] = ("hubness", "cone")

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        side = min(patient.part(Spectrum).sides, key=lambda side: side.share)
        patient.signals[self.id()] = side.share
        is_cut = side.share < self.share_of_unused and side.used < self.used
        if side.share >= self.share and not is_cut:
            return None
        share, used = (self.share, None) if side.share < self.share else (self.share_of_unused, self.used)
        return self.finding(
            f"the {side.name} use {side.rank:.0f} of {side.d} dimensions",
            f"The effective rank of the centred {side.name} is {side.rank:.1f}; isotropic vectors would have "
            f"{side.null:.0f}. The other dimensions carry almost nothing.",
            (
                Evidence("effective rank / that of isotropic vectors", side.share, share, (0.06, 1)),
                Evidence("share of directions with a thousandth of the widest", side.used, used, (0.3, 1)),
                Evidence("effective rank", side.rank, None, (None, None)),
            ),
            (
                Advice("Put a projector (a linear layer or a small MLP) between the encoder and the loss."),
                Advice("Use weaker augmentation, more negatives, or a lower temperature, which spreads items."),
            ),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Make all directions equally wide."""
        split = patient.part(Items).split
        return () if split.images is None else (Remedy("with both sides whitened together", whitened(split)),)
