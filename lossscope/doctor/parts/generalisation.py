"""Compare recall on the training data with recall on held-out data, among equally many candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import TooLittle
from lossscope.sources.base import read_source

from .alignment import LEAST, choose_pairs, mean_recall
from .patient import Patient
from .trained_model import TrainedModel

_MOST_PAIRS = 1000


@dataclass(frozen=True)
class Generalisation:
    """Mean recall@1 of both directions, among equally many candidates in both splits."""

    pairs: int  # that were compared in each split
    train: float
    held_out: float
    earlier_gap: float | None = None  # train − held-out of an earlier epoch, where there is a checkpoint
    earlier_held_out: float | None = None
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings, TrainedModel)

    @classmethod
    def of(cls, patient: Patient, stored: SplitEmbeddings, model: TrainedModel) -> Generalisation:
        """Compare training data with held-out data; where they differ, also at an earlier checkpoint."""
        held_out, options = model.held_out, patient.options
        pairs = pairs_of_both(stored, held_out)
        recalls = recall_of_pairs(stored, pairs), recall_of_pairs(held_out, pairs)
        earlier = model.earlier()
        if earlier is None or recalls[0] < 2 * recalls[1]:
            return cls(pairs, *recalls)
        before = [
            recall_of_pairs(read_source(earlier, options.request(name)), pairs) for name in ("train", held_out.split)
        ]
        return cls(pairs, *recalls, before[0] - before[1], before[1])

    @property
    def gap(self) -> float:
        """Recall on the training data − recall on held-out data."""
        return self.train - self.held_out


def recall_of_pairs(split: SplitEmbeddings, pairs: int) -> float:
    """Return the mean recall@1 of both directions among the first pairs of a split."""
    first, second = choose_pairs(split.relations)
    first, second = first[:pairs], second[:pairs]
    return mean_recall(split.similarities(first, second), first, second, split.relations)


def pairs_of_both(train: SplitEmbeddings, held_out: SplitEmbeddings) -> int:
    """Return how many pairs can be compared in both. Raises Missing where they are too few."""
    pairs = min(len(choose_pairs(split.relations)[0]) for split in (train, held_out))
    if pairs < 4 * LEAST:
        raise TooLittle(f"a split has {pairs} pairs; {4 * LEAST} are needed")
    return min(pairs, _MOST_PAIRS)
