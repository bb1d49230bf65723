"""Does another row say that a negative answers the query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class OtherPositiveAsNegative(Check):
    """Is a negative a positive of the same question in other marks, or of the pair reversed? Rows of text data.

    That it is a positive of some other query is no fault: negatives that are drawn from the pool of answers all are,
    and of those that are mined in a corpus many, since labelled passages are what queries are near to. It says where
    negatives come from, not that they answer. What says it is another row: its query differs from this one in marks
    at its ends alone, or is this negative, with this query as its positive (pairs of equivalent texts).
    Source: lossscope data lint; Qu et al. 2021 (RocketQA), unlabelled answers among mined negatives.
    """

    share: float = 0.001  # of the rows; one row in a thousand is a slip, more is a procedure
    severity: ClassVar[Severity] = "warning"
    place: ClassVar[int] = 26

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a negative that another row has as an answer")
