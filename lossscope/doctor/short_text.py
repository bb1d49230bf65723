"""Are negatives single characters, or far shorter than positives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class ShortText(Check):
    """Are negatives single characters or far shorter than positives? Rows of text data, as `data lint` counts them.

    A miner that reads a text as a list gets its characters, which a model tells from answers by length alone.
    Source: FlagEmbedding issue 1388; lossscope data lint.
    """

    share: float = 0.001  # of the rows; one row in a thousand is a slip, more is a procedure
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 14
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a text that is a character, or far shorter than positives")
