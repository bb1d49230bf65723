"""Is the order of the rows lost within groups, or in a matrix?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Remedy, Severity
from .parts.alignment import Alignment
from .parts.half_spaces import HalfSpaces, Partners, partners_restored
from .parts.items import Items
from .parts.patient import Patient
from .parts.row_maxima import RowMaxima


@dataclass(frozen=True)
class OrderLost(Check):
    """Do the right partners of queries stand in other rows than the stated positives?

    Both halves of the dimensions name the same nearest candidate, which is not the stated positive: pairs were
    shuffled within topics, files or batches. Where vectors know only the topic, or where hubs win, the halves agree as
    often between a query and its most similar other query. In a matrix alone, the highest similarity of a row is far
    above the second. By chance the first gap is only twice the gap from the second to the third.
    Source: a permutation keeps every cosine; gaps of extremes of a normal sample are 1 to 1/2 (Weissman 1978).
    """

    agreement: float = 0.1  # of the nearest candidates by both halves
    groups: float = 2.0  # times the agreement that topics and hubs give, between a query and its most similar query
    stated: float = 0.25  # share of the agreeing queries whose partner is the stated positive, at most
    found: float = 0.5  # recall@1 among all items, above which the stated positives are the right ones
    gap: float = 4.0  # from first to second of a row over second to third; 2 by chance, 3 in trained models
    mutual: float = 0.8  # share of the rows that are the nearest of their nearest column; 0.5 by chance
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 12
    explains: ClassVar[tuple[str, ...]] = (
        "no-learning", "shuffled-share", "no-gradient", "temperature-too-low", "hard-negatives-too-hard", "hubness",
        "one-direction", "temperature-too-high", "not-finished", "overfitting",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_trained()
        alignment = patient.part(Alignment)
        if patient.has(RowMaxima):
            return self._of_matrix(patient, alignment, patient.part(RowMaxima))
        if not patient.part(Items).is_sample and alignment.best.recall > self.found:
            return None  # most stated positives are the nearest of all candidates
        partners = patient.part(HalfSpaces).best
        patient.signals[self.id()] = 1 - partners.stated if self._is_known(partners) else 0.0
        if alignment.at_chance or not self._is_lost(partners):
            return None  # where all is at chance, misaligned-pairs looks for a shift or a sort
        split = patient.part(Items).source
        ids = (split.image_ids, split.caption_ids)
        ids = ids if partners.direction == split.relations.sides.labels[0] else ids[::-1]
        rows = np.flatnonzero(partners.agree & ~partners.paired)[:5]
        return self._found(
            f"For {partners.agreement:.0%} of the queries both halves of the dimensions name the same "
            f"partner, the stated positive of {partners.stated:.0%} of these: pairs were shuffled within groups.",
            (
                Evidence("nearest candidates that both halves name", partners.agreement, self._least(partners),
                         (None, None)),
                Evidence(f"of these, stated positives, {partners.direction}", partners.stated, self.stated, (0.7, 1)),
            ),
            tuple(
                f"{partners.direction}: {ids[0][partners.queries[row]]} belongs with {ids[1][partners.nearest[row]]}"
                for row in rows
            ),
        )  # fmt: skip

    def _least(self, partners: Partners) -> float:
        """Return the agreement above what topics, hubs and chance give."""
        of_groups = partners.agreement_of_groups
        return max(self.agreement, self.groups * of_groups, of_groups + 3 * partners.error)

    def _is_known(self, partners: Partners) -> bool:
        """Return whether the halves know partners: they agree more often than topics and hubs do."""
        return partners.agreement >= self._least(partners)

    def _is_lost(self, partners: Partners) -> bool:
        return self._is_known(partners) and partners.stated <= self.stated

    def _of_matrix(self, patient: Patient, alignment: Alignment, maxima: RowMaxima) -> Finding | None:
        patient.signals[self.id()] = maxima.gap
        best = alignment.best
        if maxima.gap < self.gap or maxima.mutual < self.mutual or best.recall > self.stated * maxima.mutual:
            return None
        return self._found(
            f"In {maxima.mutual:.0%} of the rows the highest similarity is also the highest of its column, "
            f"far above the second, yet recall@1 is {best.recall:.1%}: the columns are in another order than the rows.",
            (
                Evidence("gap to the second similarity over that to the third", maxima.gap, self.gap, (0.5, 3.5)),
                Evidence(f"recall@1 {best.label}", best.recall, self.stated * maxima.mutual, (0.3, 1)),
            ),
            (),
        )

    def _found(self, why: str, evidence: tuple[Evidence, ...], examples: tuple[str, ...]) -> Finding:
        return self.finding(
            "the right partners stand in other rows",
            why,
            evidence,
            (
                Advice("Keep both sides of a pair in one record when you sort, shuffle or group; look at ids by eye."),
                Advice("Check samplers that draw the queries and the positives of a topic separately."),
            ),
            examples=examples,
        )

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Pair each query with the candidate that one half names, and ask the other half."""
        return partners_restored(patient)
