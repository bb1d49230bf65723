"""Are the embeddings of unit length?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from lossscope.core.unit_vectors import row_lengths

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment, align
from .parts.items import Items
from .parts.patient import Patient
from .parts.vectors import SideFacts, Vectors
from .types import Cure

_SPAN = 1e-15  # lengths this far from each other, or from 1, can make products that float32 does not hold


@dataclass(frozen=True)
class NotNormalised(Check):
    """Are there rows whose length is not 1 although the objective expects cosines?

    Every objective here takes cosines, and its margin, temperature and eps mean cosines. Many trainers normalise in the
    loss, so rows of a dump need not have unit length: a note. It is a warning where only some rows of a side have unit
    length, and in a running loop whose loss takes products of the rows as they are.
    Source: Wang et al. 2017, NormFace; Wang & Isola 2020, section 2.
    """

    tolerance: float = 1e-3  # of a length; rounding to bfloat16 moves one by at most 4e-3, which is added there
    mixed: float = 0.9  # share of the rows off 1 below which the others were normalised
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 8
    explains: ClassVar[tuple[str, ...]] = ()

    def examine(self, patient: Patient) -> Finding | None:
        worst = max(patient.part(Vectors).facts, key=self._share)
        share, norms = self._share(worst), worst.lengths
        patient.signals[self.id()] = share
        if not share:
            return None
        return self.finding(
            f"{round(share * len(norms)):,} of {len(norms):,} {worst.name} are not of unit length",
            f"98 % of the {worst.name} have lengths from {np.quantile(norms, 0.01):.4g} to "
            f"{np.quantile(norms, 0.99):.4g}. "
            "A dot product of such rows is no cosine: long rows win every ranking, and tau means something else for "
            "each row. The other numbers here use normalised rows.",
            (
                Evidence(f"share of {worst.name} off 1 by more than {self._tolerance(worst):g}", share, 0.0, (0, 0)),
                Evidence("median length", float(np.median(norms)), None, (1 - self.tolerance, 1 + self.tolerance)),
            ),
            (Advice("Normalise both sides before the loss, or let the loss do it: normalize(x, dim=-1)."),),
            "warning" if share < self.mixed or patient.takes_products else None,
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Rank by cosines instead of products."""
        if not patient.has(Alignment):
            return ()
        vectors, alignment = patient.part(Vectors), patient.part(Alignment)
        rows = patient.part(Items).rows
        first = _in_float32(vectors.first[torch.from_numpy(rows.i2t[alignment.rows.i2t])])
        second = _in_float32(vectors.second[torch.from_numpy(rows.t2i[alignment.rows.t2i])])
        if first is None or second is None:
            return ()
        products = first @ second.T
        valid = zip((products, products.T), (alignment.valid, alignment.valid.T), alignment.directions, strict=False)
        before = [(align(S, mask, direction.label), direction) for S, mask, direction in valid]
        by_product, by_cosine = max(before, key=lambda pair: pair[1].recall - pair[0].recall)
        what, statistic = "ranked by cosines in place of products", f"recall@1 {by_cosine.label}"
        possible = max(by_cosine.recall, by_product.recall)
        return (Remedy(what, cure=Cure(what, statistic, by_product.recall, by_cosine.recall, possible)),)

    def _tolerance(self, side: SideFacts) -> float:
        narrow = {torch.bfloat16: 4e-3, torch.float16: 5e-4}
        return self.tolerance + narrow.get(side.precision, 0.0)

    def _share(self, side: SideFacts) -> float:
        norms = side.lengths
        return float((np.abs(norms - 1) > self._tolerance(side)).mean()) if len(norms) else 0.0


def _in_float32(rows: torch.Tensor) -> torch.Tensor | None:
    """Return float32 rows times one power of two, which changes no ranking: the longest is about 1.

    None where products with the shortest row would underflow.
    """
    lengths = row_lengths(rows)
    longest, shortest = float(lengths.max()), float(lengths.min())
    if not np.isfinite(longest) or shortest < _SPAN * longest:
        return None
    if _SPAN < longest < 1 / _SPAN:
        return rows.float()
    return torch.from_numpy(np.ldexp(rows.double().numpy(), -int(np.frexp(longest)[1]))).float()
