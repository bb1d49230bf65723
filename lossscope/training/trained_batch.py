"""Describe a batch of a training to callbacks, which never change the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.pair import Pair
from lossscope.core.sides import Sides
from lossscope.core.similarity import Mask
from lossscope.datasets.base import Split
from lossscope.objectives.base import Objective


@dataclass(frozen=True)
class TrainedBatch:
    """A batch of a training, and the numbers of its step."""

    epoch: int  # from 0
    step: int  # of the epoch, from 0
    number: int  # of the step in the whole run, from 0
    objective: Objective  # at the scale of the step
    S: Tensor  # (images, captions), without a graph, before the update
    mask: Mask | Pair[Mask]  # i2t, or of both directions; the embeddings are in `info` if the model has any
    row: Mapping[str, float]  # of trajectory.csv; empty if S is not finite, as nothing is trained then
    batch: Batch  # its rows of the split
    split: Split  # of the training
    steps: int  # of the whole run

    @property
    def sides(self) -> Sides:
        """The names of rows and columns; one set if they are the same items."""
        sides = self.split.relations.sides
        return Sides(sides.first, None) if self.batch.is_one_set and not sides.is_one_set else sides

    @property
    def ids(self) -> tuple[list[str], list[str]]:
        """The ids of its rows and of its columns."""
        first, second = self.split.image_ids, self.split.caption_ids
        if self.batch.is_one_set:
            first = second = [*first, *second] if not self.split.relations.one_set else first
        return [first[row] for row in self.batch.images], [second[row] for row in self.batch.captions]


OnBatch = Callable[[TrainedBatch], str | None]
"""Called with each batch, in the process that writes; returns a reason to stop, or None to continue."""
