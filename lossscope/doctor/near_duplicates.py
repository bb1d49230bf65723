"""Does a positive come again in another row, with other punctuation or a title in front?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class NearDuplicates(Check):
    """Is a positive a near copy of a positive of an earlier row? Rows of text data.

    `lossscope data lint` counts them: the texts differ only in punctuation and white space, in a title in front, or in
    an article or a form of "be" among 10 words or more. Another name, number or word makes another text, so instances
    of a template are no copies. In a batch the copy is a false negative of the other's query.
    Source: the corpora of passages that are cut or titled twice; lossscope data lint.
    """

    share: float = 0.01  # of the rows, as for exact duplicates; captions of MSR-VTT have 0.0066
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 18
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")
    explains: ClassVar[tuple[str, ...]] = ("false-negatives",)

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a positive that is a near copy of one of an earlier row")
