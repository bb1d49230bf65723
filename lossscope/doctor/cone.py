"""Do all items of a side point roughly the same way?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.patient import Patient
from .parts.spectrum import NARROW, Spectrum

_USUAL = Advice("Nothing needs to be done. Set thresholds on cosines anew for every model.")
_COLLAPSES = Advice(
    "A cone this narrow comes from a model that collapses, or from an encoder that was never trained for cosines. "
    "Compare recall with that of the model before this training (--before)."
)


@dataclass(frozen=True)
class Cone(Check):
    """How high is the mean cosine of different items of a side?

    Untrained and trained networks have 0.4 to 0.6 and more: a cosine has a meaning only beside other cosines.
    Source: Liang et al. 2022, section 3 (0.47 to 0.56 in untrained encoders); Ethayarajh 2019.
    """

    mean_cosine: float = 0.3  # from which it is worth a line
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 91

    def examine(self, patient: Patient) -> Finding | None:
        sides = patient.part(Spectrum).sides
        widest = max(sides, key=lambda side: side.mean_cosine)
        if widest.mean_cosine < self.mean_cosine:
            return None
        each = ", ".join(f"{side.name} {side.mean_cosine:.2f}" for side in sides)
        return self.finding(
            f"different {widest.name} have a mean cosine of {widest.mean_cosine:.2f}",
            f"Mean cosine of different items: {each}. A cosine of 0.6 may be low in such a cone: compare ranks, not "
            "cosines across models.",
            (Evidence(f"mean cosine of different {widest.name}", widest.mean_cosine, self.mean_cosine, (-0.1, 0.8)),),
            (_COLLAPSES if widest.mean_cosine >= NARROW else _USUAL,),
        )
