"""Are queries paired with the wrong candidates?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment
from .parts.half_spaces import partners_restored
from .parts.items import MOST, Items
from .parts.patient import Patient
from .parts.remedies import paired_again
from .parts.restoration import Order, Restoration, Structure


@dataclass(frozen=True)
class MisalignedPairs(Check):
    """Do positives rank at chance level, or worse than in another order, although both sides share structure?

    The proof is an order of the rows that restores the pairs, or best candidates that are closer than those between
    sides that are reflected in their principal directions, which share nothing but the widths of these directions.
    Where neighbours are alike, as passages of a document, shifted pairs are better than guessing.
    Source: a permutation keeps every cosine within a side and every best candidate, and destroys recall.
    """

    restored: float = 0.35  # mean share of the items above the positive in another order; 0.5 by chance
    closer: float = 0.5  # that share over that of the stated order, if better than guessing; 1 if rows are alike
    found: float = 0.5  # their recall@1, above which the stated positives are the right ones
    structure: float = 0.05  # of the best candidates above those of reflected sides, in deviations over queries
    reflections: float = 4.0  # in deviations over reflections; independent sides have at most 2
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 12
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "shuffled-share", "no-gradient", "temperature-too-low", "hard-negatives-too-hard",
        "one-direction", "hubness", "dimensional-collapse", "margin-plateau", "temperature-too-high", "not-finished",
        "modality-gap", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        alignment = patient.part(Alignment)
        patient.signals[self.id()] = alignment.best.auc
        best = alignment.best
        if not alignment.at_chance and (best.recall > self.found or not patient.has(Restoration)):
            return None
        order = patient.part(Restoration).best
        limit = self.restored if alignment.at_chance else self.closer * (1 - best.auc)
        if order is not None and order.share_above < limit:
            return self._of_order(alignment, order, limit)
        if not alignment.at_chance:
            return None
        structure = patient.part(Structure)
        if structure.among_queries > self.structure and structure.among_reflections > self.reflections:
            return self._of_structure(alignment, structure)
        return None

    def _of_order(self, alignment: Alignment, order: Order, limit: float) -> Finding:
        if alignment.at_chance:
            why = f"Positives rank at chance level, but not with {order.what}: the rows are in another order."
        else:
            why = f"With {order.what}, far fewer items rank above a query's positive: the rows are in another order."
        return self._found(
            alignment,
            why,
            Evidence("share of items above the positive in that order", order.share_above, limit, (0, 0.3)),
            f"Write the rows in one order: {order.what} restores the pairs.",
        )

    def _of_structure(self, alignment: Alignment, structure: Structure) -> Finding:
        above = structure.among_reflections
        return self._found(
            alignment,
            "Positives rank at chance level, yet the best candidates of a query are closer than unrelated items would "
            "be: the right partners seem to stand in other rows.",
            Evidence("best candidates above reflected sides, in deviations", above, self.reflections, (None, None)),
            "Compare the ids of both sides row by row: one side may have been shuffled, sorted or filtered alone.",
        )

    def _found(self, alignment: Alignment, why: str, proof: Evidence, advice: str) -> Finding:
        best = alignment.best
        by_chance = best.auc_by_chance if alignment.at_chance else None  # pairs shifted among alike items are above it
        return self.finding(
            "queries are paired with the wrong candidates",
            why,
            (proof, Evidence(f"AUC {best.label}, 0.5 by chance", best.auc, by_chance, (0.7, 1))),
            (Advice(advice), Advice("Look at a few pairs by eye before anything else.")),
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Restore the order of the pairs, else pair by half of the dimensions."""
        order = patient.part(Restoration).best
        if order is None or order.share_above >= self.restored:
            return partners_restored(patient)
        return (Remedy(f"with {order.what}", paired_again(patient.part(Items).source, order.pairs[:MOST])),)
