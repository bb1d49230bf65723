"""Are held-out items in the training data?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.sides import plural

from ._text_rows import worst_of
from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.patient import Patient
from .parts.splits import SharedItems, Splits
from .parts.texts import Texts


@dataclass(frozen=True)
class SplitLeak(Check):
    """Is an item of held-out data, by its input or by a nearly identical embedding, in the training data?

    Source: equal inputs have equal embeddings; Barz & Denzler 2020 found 10 % of CIFAR-100's test images in its
    training data.
    """

    share: float = 0.005  # of the held-out items
    usual: float = 2.0  # times the share of training items as near to another training item, which is added
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 14
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        if not patient.has(Splits) and not patient.has(Texts):
            raise Missing(
                "it has no held-out data beside the training data; --against names it", "the training data (--against)"
            )
        return worst_of(
            lambda: self._of_texts(patient.part(Texts)), lambda: self._of_items(patient, patient.part(Splits))
        )

    def _of_items(self, patient: Patient, splits: Splits) -> Finding | None:
        worst = max(splits.shared, key=lambda items: items.share - self._threshold(items))
        share, threshold, name = worst.share, self._threshold(worst), plural(worst.name)
        patient.signals[self.id()] = share
        if share <= threshold:
            return None
        what = "the same input" if len(worst.equal) else "nearly the same embedding"
        return self.finding(
            f"{share:.1%} of the {worst.held_out} {name} are in the training data",
            f"{len(worst.rows):,} of {worst.total:,} {name} of {worst.held_out} have {what} as one of "
            f"{worst.train}: the model is evaluated on items that it was trained on.",
            (Evidence(f"share of {name} that are in both", share, threshold, (0, threshold)),),
            (Advice("Remove these items from one of the splits."),),
            examples=tuple(f"{worst.name} {worst.ids[row]}" for row in worst.rows[:5]),
        )

    def _threshold(self, items: SharedItems) -> float:
        """Return the threshold of the share, given how many training items are as near to each other."""
        return self.share + self.usual * items.usual

    def _of_texts(self, texts: Texts) -> Finding | None:
        if self.id() not in texts.report.checked:
            raise Missing("it is one split; --against names the training data", "the training data (--against)")
        found = texts.fault(self.id())
        if found is None or found.share <= self.share:
            return None
        return self.finding(
            f"{found.share:.1%} of the rows share a text with an earlier split",
            f"{found.count:,} rows of {texts.target} share a query or a positive with an earlier split, on which the "
            "model was trained.",
            (Evidence("share of rows that are in both", found.share, self.share, (0, self.share)),),
            found.advice,
            examples=found.examples,
        )
