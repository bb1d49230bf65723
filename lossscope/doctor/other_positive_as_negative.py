"""Does another row state a negative as an answer to the query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class OtherPositiveAsNegative(Check):
    """Is a negative a positive of the same question in other marks, or of the pair reversed? Rows of text data.

    A negative may be a positive of some other query without fault: all negatives from the pool of answers are, and many
    that are mined in a corpus, as queries are near labelled passages. That shows where negatives come from, not that
    they answer. Another row proves it: its query differs from this query only in marks at its ends, or is this
    negative, with this query as its positive (pairs of equivalent texts).
    Source: lossscope data lint; Qu et al. 2021 (RocketQA), unlabelled answers among mined negatives.
    """

    share: float = 0.001  # of the rows; one row in a thousand is a slip, more is a procedure
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 26
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a negative that another row has as an answer")
