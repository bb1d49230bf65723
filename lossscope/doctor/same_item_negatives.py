"""Are other captions of a query's image its negatives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.sides import plural

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .parts.items import Items
from .parts.patient import Patient


@dataclass(frozen=True)
class SameItemNegatives(Check):
    """How many captions of a query's own image are among its negatives in a batch of pairs?

    Source: Bleeker & de Rijke 2022; every published loader keeps them (docs/errata.md, E7).
    """

    expected: float = 0.02  # in a batch: one in 50 queries
    severity: ClassVar[Severity] = "note"
    order: ClassVar[int] = 70

    def examine(self, patient: Patient) -> Finding | None:
        items = patient.part(Items)
        relations = items.split.relations
        if relations.one_set:
            raise Missing("items of a class are positives of each other")
        if patient.recipe.get("same_image") == "mask":
            return None
        sizes = np.bincount(relations.positives[:, 0]).astype(np.float64)
        n = float(sizes.sum()) * items.whole[0] / max(relations.first, 1)
        scale = items.whole[0] / max(relations.first, 1)
        probability = float((sizes * (sizes - 1)).sum()) * scale / max(n * (n - 1), 1.0)
        expected = (patient.batch_size - 1) * probability if probability else 0.0
        if expected < self.expected:
            return None
        second = plural(str(relations.sides.second))
        if expected < 0.5:  # then hardly a query has two
            title = f"1 query in {1 / expected:.0f} has another of its {second} among its negatives"
        else:
            title = f"a query has {expected:.2g} of its other {second} among its negatives"
        return self.finding(
            title,
            f"Pairs are shuffled one by one, so several {second} of one {relations.sides.first} may meet in a "
            "batch, as "
            "negatives of each other. Every published loader does so.",
            (Evidence("expected in a batch", expected, self.expected, (None, None)),),
            (Advice("Mask them, to see whether it matters.", patient.train_command("--same-image", "mask")),),
        )
