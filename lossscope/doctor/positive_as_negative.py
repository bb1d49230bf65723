"""Are a query's own positives among its negatives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ._text_rows import worst_of
from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.items import Items
from .parts.patient import Patient
from .parts.texts import Texts


@dataclass(frozen=True)
class PositiveAsNegative(Check):
    """Is a mined negative of a query one of its own positives, by id or by text?

    Source: ms-swift pull request 10068; llm2vec issue 178 (93 % of the rows of SQuAD, 53 % of NQ).
    """

    share: float = 0.001  # of the queries; one row in a thousand is a slip, more is a procedure
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 13
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")
    explains: ClassVar[tuple[str, ...]] = ("false-negatives", "hard-negatives-too-hard")

    def examine(self, patient: Patient) -> Finding | None:
        return worst_of(lambda: self._of_items(patient), lambda: self._of_texts(patient.part(Texts)))

    def _of_items(self, patient: Patient) -> Finding | None:
        split = patient.part(Items).split
        if split.relations.negatives is None:
            raise Missing("it has no mined negatives", "mined negatives")
        if patient.masks("same_item") or patient.recipe.get("negatives") == "none":
            return None
        wrong = own_positives(split)
        share = float(wrong.any(1).mean())
        patient.signals[self.id()] = share
        if share <= self.share:
            return None
        rows = np.flatnonzero(wrong.any(1))[:5]
        return self._found(share, "queries", f"{int(wrong.any(1).sum()):,} of {len(wrong):,} queries",
                           tuple(f"{split.relations.sides.first} {split.image_ids[row]}" for row in rows))  # fmt: skip

    def _of_texts(self, texts: Texts) -> Finding | None:
        found = texts.fault(self.id())
        if found is None or found.share <= self.share:
            return None
        count = f"{found.count:,} of {texts.report.rows:,} rows of {texts.target}"
        return self._found(found.share, "rows", count, found.examples)

    def _found(self, share: float, what: str, count: str, examples: tuple[str, ...]) -> Finding:
        return self.finding(
            f"in {share:.1%} of the {what} a negative is also a positive",
            f"{count} have a negative that is a positive of the same query: the loss pushes the query away "
            "from its answer.",
            (Evidence(f"share of {what} with a positive as a negative", share, self.share, (0, self.share)),),
            (
                Advice("Leave these negatives out: mine again, and exclude the positives by id and by text."),
                Advice("Mask them in training."),
            ),
            examples=examples,
        )


def own_positives(split: SplitEmbeddings) -> npt.NDArray[np.bool_]:
    """Return (N, k) bool: which mined negatives are positives of their query, by id, or by text where it is known."""
    relations = split.relations
    negatives = relations.negatives
    assert negatives is not None
    keys = split.input_keys.t2i
    numbers: Rows = np.arange(relations.second, dtype=np.int64) if keys is None else keys
    base = int(numbers.max(initial=0)) + 1
    positives = np.unique(relations.positives[:, 0] * base + numbers[relations.positives[:, 1]])
    wanted = np.arange(relations.first)[:, None] * base + numbers[negatives.clip(min=0)]
    wrong: npt.NDArray[np.bool_] = np.isin(wanted, positives) & (negatives != NONE)
    return wrong
