"""How much of the gradient pushes matching items away?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.batches import batch_rows
from .parts.items import Items
from .parts.patient import Patient
from .parts.truth import Truth


@dataclass(frozen=True)
class FalseNegatives(Check):
    """How much of the gradient's weight on negatives lies on items that match?

    Exact where the data set knows the truth; elsewhere by the probabilities of an audit (`--audit`).
    Source: Bleeker & de Rijke 2022, section 6; Chun et al. 2022 (ECCV Caption) for how many there are.
    """

    share: float = 0.15  # of the weight; data with a tenth of unlabelled answers have up to that
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 33
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "share")

    def examine(self, patient: Patient) -> Finding | None:
        truth, split, objective = patient.part(Truth), patient.part(Items).split, patient.objective
        on_match = total = pairs = matching = 0.0
        for directions in batch_rows(patient):
            rows = directions[0]  # the first side's items as queries, as the truth has them
            queries, candidates = rows.shape.query_ids.numpy(), rows.shape.candidate_ids[0].numpy()
            is_positive = torch.from_numpy(split.relations.is_positive(queries, candidates))
            # other captions of the query's image are same-item-negatives
            negatives = rows.mask.negatives & ~is_positive
            W = torch.where(negatives, objective(rows.S, rows.mask).W.abs(), 0.0)
            match = torch.where(negatives, torch.from_numpy(truth.probability(queries, candidates)), 0.0)
            on_match, total = on_match + float((W * match).sum()), total + float(W.sum())
            matching, pairs = matching + float(match.sum()), pairs + float(negatives.sum())
        share = on_match / total if total else 0.0
        patient.signals[self.id()] = share
        if share <= self.share:
            return None
        return self.finding(
            f"{share:.0%} of the gradient pushes away items that match",
            f"{matching / pairs:.1%} of the negatives {'' if truth.is_exact else 'probably '}match their query, and "
            f"they carry {share:.0%} of the weight on negatives."
            + (f" The audit is {truth.status}." if truth.status else ""),
            (
                Evidence("share of the weight on matching negatives", share, self.share, (0, self.share)),
                Evidence("share of the negatives that match", matching / pairs, None, (None, None)),
            ),
            (
                Advice(
                    "Label these items as positives, or mask the suspects of an audit (lossscope audit, then --mask) "
                    "and "
                    "compare with a training without the mask."
                ),
                Advice(
                    "Evaluate with metrics that know several positives: recall@k with one positive counts them as "
                    "errors."
                ),
            ),
        )
