"""Are there rows without a positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class NoPositive(Check):
    """Are there rows without a positive? Rows of text data, as `lossscope data lint` counts them.

    Source: lossscope data lint; no loss learns from a query without a positive.
    """

    share: float = 0.0  # of the rows
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 16
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "no positive")
