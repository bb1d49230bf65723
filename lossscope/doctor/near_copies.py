"""Are negatives near copies of the positive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import finding_of_rows
from .base import Check, Finding, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class NearCopies(Check):
    """Is a negative the positive of its row with a full stop, a title or a few words more? Rows of text data.

    `lossscope data lint` counts them: the texts are equal except for marks at their ends, or one text ends or begins
    with the other, which is 90 % of it (half of it behind a title that ends with a colon). Texts have 20 characters or
    more. A replaced or moved word makes another text, so contrastive pairs are no copies. A word added at an end may be
    a negation, which the check cannot see.
    Source: the corpora of passages that are cut or titled twice; lossscope data lint.
    """

    share: float = 0.01  # of the rows: some questions differ in a last word, which is rare in mined negatives
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 17
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        return finding_of_rows(self, patient, self.share, "a negative that is nearly a copy of the positive")
