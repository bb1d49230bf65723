"""Does a batch hold copies of a query's positive under other ids?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ._text_rows import worst_of
from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import LEAST
from .parts.copies import Copies
from .parts.items import Items
from .parts.patient import Patient
from .parts.remedies import without
from .parts.texts import Texts


@dataclass(frozen=True)
class Duplicates(Check):
    """Does a query have copies of its positive among its negatives, so that its loss cannot fall below log(1 + m)?

    m is the expected number of copies in a batch; in a text file, the share of rows that repeat an earlier row counts.
    Source: the identity log(1 + m) of a softmax with m copies; sentence-transformers issue 3189.
    """

    copies: float = 0.25  # expected in a batch: a floor of log 1.25 = 0.22 nats under the loss
    rows: float = 0.01  # of a text file
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 18
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "copies")
    explains: ClassVar[tuple[str, ...]] = ("false-negatives",)

    def examine(self, patient: Patient) -> Finding | None:
        return worst_of(lambda: self._of_items(patient), lambda: self._of_texts(patient.part(Texts)))

    def _of_items(self, patient: Patient) -> Finding | None:
        worst = max(patient.part(Copies).sides, key=lambda side: side.probability)
        if patient.masks("same_text"):
            return None
        m = worst.expected(patient.batch_size) if worst.probability else 0.0
        patient.signals[self.id()] = m
        if m < self.copies:
            return None
        size = patient.batch_size
        return self.finding(
            f"a batch of {size:,} holds {m:.2g} copies of each query's positive on average",
            f"In {worst.copied:.0%} of the pairs, {worst.name} under another id have the same {worst.by}. As "
            "negatives, "
            "these copies are pushed away from their own query, and a softmax loss cannot fall below "
            f"log(1 + {m:.2g}) = {math.log1p(m):.2g}.",
            (
                Evidence("expected copies of the positive in a batch", m, self.copies, (0, self.copies)),
                Evidence("floor of the loss, log(1 + m)", math.log1p(m), None, (0, math.log1p(self.copies))),
            ),
            (
                Advice("Keep one copy of each item, with the positives of all its copies."),
                Advice("Leave copies out of the negatives of a batch.", patient.train_command("--mask", "same-text")),
            ),
            examples=worst.examples,
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Keep one copy of each item."""
        if not patient.has(Copies):
            return ()
        sides, split = patient.part(Copies).sides, patient.part(Items).split
        worst = max(sides, key=lambda side: side.probability)
        nothing = worst.again[:0]
        is_first = worst is sides[0] and (len(sides) > 1 or split.images is not None)
        rows = (worst.again, nothing) if is_first else (nothing, worst.again)
        if len(split.relations.positives) - len(worst.again) < LEAST:
            return ()
        return (Remedy(f"with one of each of the copied {worst.name}", without(split, *rows)),)

    def _of_texts(self, texts: Texts) -> Finding | None:
        found = texts.fault(self.id())
        if found is None or found.share < self.rows:
            return None
        return self.finding(
            f"{found.share:.1%} of the rows repeat an earlier row",
            f"{found.count:,} rows of {texts.target} have the same query and positives as an earlier row: in a "
            "batch the copy is a negative of its own query.",
            (Evidence("share of rows that repeat another", found.share, self.rows, (0, self.rows)),),
            found.advice,
            examples=found.examples,
        )
