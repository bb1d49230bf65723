"""Are the embeddings of unit length?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.patient import Patient
from .parts.vectors import SideFacts, Vectors


@dataclass(frozen=True)
class NotNormalised(Check):
    """Are there rows whose length is not 1, where the objective wants cosines?

    Every objective here takes cosines: margins, temperatures and eps are of them.
    Source: Wang et al. 2017, NormFace; Wang & Isola 2020, section 2.
    """

    tolerance: float = 1e-3  # of a length; rounding to bfloat16 moves one by at most 4e-3, which is added there
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 8
    explains: ClassVar[tuple[str, ...]] = ()

    def examine(self, patient: Patient) -> Finding | None:
        worst = max(patient.part(Vectors).facts, key=self._share)
        share, norms = self._share(worst), worst.norms[np.nan_to_num(worst.norms) > 0]
        patient.signals[self.id()] = share
        if not share:
            return None
        return self.finding(
            f"{round(share * len(norms)):,} of {len(norms):,} {worst.name} are not of unit length",
            f"Lengths of the {worst.name} are {np.quantile(norms, 0.01):.4g} to {np.quantile(norms, 0.99):.4g} (98 % "
            "of them): a dot product of such rows is no cosine, so long rows win every ranking and tau means another "
            "thing for each. The numbers of this page are of the normalised rows.",
            (
                Evidence(f"share of {worst.name} off 1 by more than {self._tolerance(worst):g}", share, 0.0, (0, 0)),
                Evidence("median length", float(np.median(norms)), None, (1 - self.tolerance, 1 + self.tolerance)),
            ),
            (Advice("Normalise both sides before the loss: x = torch.nn.functional.normalize(x, dim=-1)."),),
        )

    def _tolerance(self, side: SideFacts) -> float:
        narrow = {torch.bfloat16: 4e-3, torch.float16: 5e-4}
        return self.tolerance + narrow.get(side.precision, 0.0)

    def _share(self, side: SideFacts) -> float:
        norms = side.norms[np.nan_to_num(side.norms) > 0]
        return float((np.abs(norms - 1) > self._tolerance(side)).mean()) if len(norms) else 0.0
