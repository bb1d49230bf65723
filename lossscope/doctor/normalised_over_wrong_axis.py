"""Were columns normalised instead of rows?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.patient import Patient
from .parts.vectors import SideFacts, Vectors

_COLUMNS = "All columns"


@dataclass(frozen=True)
class NormalisedOverWrongAxis(Check):
    """Do the columns, or the whole matrix, have unit length while the rows do not?

    If batches were normalised one by one and joined, the square of every column's length is their number.
    Source: tensorflow/similarity issue 233.
    """

    tolerance: float = 1e-3  # of a length, as for rows
    exactly: float = 1e-5  # of the squared length of the matrix to a number of batches: float32 adds up to that
    parts: int = 64  # batches, at most: more are near any length
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 2
    explains: ClassVar[tuple[str, ...]] = (
        "not-normalised", "no-learning", "margin-plateau", "dimensional-collapse", "hubness", "temperature-too-high",
        "no-gradient", "half-precision", "batch-ceiling", "anisotropy",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        sides = [(side, *found) for side in patient.part(Vectors).facts if (found := self._what(side))]
        if not sides:
            return None
        side, what, value = sides[0]
        rows = float(np.nanmedian(side.norms))
        what_has_it = "a column" if what == _COLUMNS else "the whole matrix"
        return self.finding(
            f"the {side.name} were normalised over the wrong axis",
            f"{what} of the {side.name} {'have' if what == _COLUMNS else 'has'} length {value:.4g}, and "
            f"the rows {rows:.3g}: each embedding depends on the others of its batch, and the loss sees dot products "
            "of about 1 / n instead of cosines.",
            (
                Evidence(f"length of {what_has_it}", value, 1 + self.tolerance, (None, None)),
                Evidence("median length of a row", rows, None, (1 - self.tolerance, 1 + self.tolerance)),
            ),
            (Advice("Normalise over the last axis: torch.nn.functional.normalize(x, dim=-1), l2_normalize(x, -1)."),),
        )

    def _what(self, side: SideFacts) -> tuple[str, float] | None:
        rows = side.lengths
        if side.d < 2 or len(rows) < 4 or np.mean(np.abs(rows - 1) < self.tolerance) > 0.5:
            return None
        if side.column_norms.max() > len(rows):  # longer than as many batches as rows make it
            return None
        squares = np.square(side.column_norms)
        whole = float(squares.sum())
        if abs(whole - 1) < self.tolerance:
            return "The whole matrix", whole**0.5
        batches = round(float(np.median(squares)))
        equal = np.all(np.abs(np.sqrt(squares / max(batches, 1)) - 1) < self.tolerance)
        if batches >= 1 and batches <= len(rows) / 2 and equal:
            return _COLUMNS, float(np.median(side.column_norms))
        parts = round(whole)
        if 1 < parts <= min(self.parts, len(rows) / 2) and abs(whole / parts - 1) < self.exactly:
            return f"The whole matrix, {parts} batches of it,", whole**0.5
        return None
