"""Are both views of an item the same?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from .base import Advice, Check, Evidence, Finding, Missing, Severity, TooLittle
from .parts.alignment import LEAST, choose_pairs
from .parts.items import Items
from .parts.patient import Patient
from .parts.vectors import SCORES_PAIRS


@dataclass(frozen=True)
class IdenticalViews(Check):
    """Is nearly every positive its query itself: one array under two names, or an augmentation that is not applied?

    Recall is then 100 % by construction, and such pairs teach nothing. A labelled set that holds some items twice does
    not count, nor do items that are all alike. It is a note where the texts of both sides are equal, as in data for
    views by dropout, which differ in train mode only.
    Source: SimCLR 2020, positives are two augmentations; SimCSE 2021 without dropout.
    """

    apart: float = 1e-6  # 1 - cosine of a pair, at most: rounding of the same input, encoded twice in float32
    share: float = 0.99  # of the pairs; a few may have been loaded otherwise
    different: float = 1e-3  # 1 - cosine of different items, at least, else the model has collapsed
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 8
    healthy: ClassVar[tuple[str, str] | None] = ("below", "share")
    explains: ClassVar[tuple[str, ...]] = ("no-gradient", "temperature-too-low", "hard-negatives-too-hard")

    def examine(self, patient: Patient) -> Finding | None:
        items = patient.part(Items)
        split = items.split
        if split.images is None or split.captions is None:
            raise Missing(
                SCORES_PAIRS if split.similarity is None else "it has similarities and no embeddings", "embeddings"
            )
        first, second = choose_pairs(split.relations)
        if len(first) < LEAST:
            raise TooLittle(f"it has {len(first)} pairs; {LEAST} or more are compared")
        x, y = items.source.images, items.source.captions
        assert x is not None
        assert y is not None
        of_pairs = _cosines(x[items.rows.i2t[first]], y[items.rows.t2i[second]])
        others = _cosines(x[items.rows.i2t[first]], y[items.rows.t2i[np.roll(second, len(second) // 2)]])
        share, apart = float((1 - of_pairs <= self.apart).mean()), 1 - float(others.mean())
        patient.signals[self.id()] = share
        if share < self.share or apart < self.different:
            return None
        sides = split.sides
        pair = f"two {sides.first}s of a class" if sides.second is None else f"the {sides.first} and the {sides.second}"
        is_of_texts = self._equal_texts(items, first, second)
        return self.finding(
            "both sides of a pair are the same",
            f"In {share:.1%} of the pairs {pair} have a cosine of 1, up to rounding. A view is compared with "
            "itself: recall is perfect for any model, and nothing is left to learn.",
            (
                Evidence("share of pairs with a cosine of 1", share, self.share, (0, 0.1)),
                Evidence("1 − mean cosine of different items", apart, None, (self.different, None)),
            ),
            (
                Advice("Check whether one array was saved under two names, or one view was encoded twice."),
                Advice("Apply the augmentation anew to each view. Views by dropout differ in train mode only."),
            ),
            severity="note" if is_of_texts else None,
            examples=(f"{split.image_ids[first[0]]} = {split.caption_ids[second[0]]}",),
        )

    @staticmethod
    def _equal_texts(items: Items, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> bool:
        """Return whether the texts of both sides are known and equal: then the data are meant so."""
        if items.source.read_texts is None or items.split.sides.is_one_set:
            return False
        texts, split = items.source.read_texts(), items.split
        if texts.i2t is None or texts.t2i is None:
            return False
        queries = [texts.i2t.get(split.image_ids[row]) for row in first]
        answers = [texts.t2i.get(split.caption_ids[row]) for row in second]
        return None not in queries and queries == answers


def _cosines(x: torch.Tensor, y: torch.Tensor) -> npt.NDArray[np.float64]:
    """Return the cosine of each row of x with that of y, in float64: float32 has no number within 1e-7 of 1."""
    cosines: npt.NDArray[np.float64] = torch.nn.functional.cosine_similarity(x.double(), y.double(), dim=1).numpy()
    return cosines
