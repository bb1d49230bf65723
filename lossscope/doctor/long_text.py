"""Are there texts longer than encoders read?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class LongText(Check):
    """Are there texts longer than encoders read? Rows of text data, as `lossscope data lint` counts them.

    Source: lossscope data lint; encoders cut texts at 512 tokens or fewer.
    """

    share: float = 0.01  # of the rows
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 60
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a text longer than encoders read")
