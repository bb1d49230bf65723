"""Are positives of other queries among the negatives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient
from .parts.texts import Texts


@dataclass(frozen=True)
class OtherPositiveAsNegative(Check):
    """Are positives of other queries among the negatives? Rows of text data, as `lossscope data lint` counts them.

    Source: lossscope data lint; Qu et al. 2021 (RocketQA).
    """

    share: float = 0.2  # of the rows
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 26

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient.part(Texts), self.share, "a negative that is a positive of another query")
