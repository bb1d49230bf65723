"""Read the call of a loss with class vectors: items against the vector of every class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import UnsupportedLoss
from lossscope.objectives.custom.class_vectors import class_similarity

from .recording import Call


@dataclass(frozen=True)
class ClassCall:
    """A call of a loss with class vectors: items, their classes, and the vector of each class."""

    embeddings: Tensor  # (n, d)
    labels: Tensor  # (n,)
    classes: int  # C
    references: Tensor | None  # (C, d); None where a class has several centres
    indices_tuple: None = None  # a miner weighs items here, and leaves no class out
    is_one_set: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of S."""
        return len(self.embeddings), self.classes

    def mask(self, device: torch.device) -> Mask:
        """Return the mask in which every class is a candidate of every item."""
        match = self.labels.to(device)[:, None] == torch.arange(self.classes, device=device)[None, :]
        return Mask(match, torch.ones_like(match))


def class_call(loss: Any, embeddings: Tensor, labels: Tensor | None, calls: Sequence[Call]) -> ClassCall:
    """Return a call from the one similarity of items and classes that the loss computed in it.

    Raises UnsupportedLoss where there is not one such similarity.
    """
    found = [call for call in calls if call.result.ndim == 2 and len(call.result) == len(embeddings)]
    if len(found) != 1 or labels is None:
        raise UnsupportedLoss(
            f"{type(loss).__name__} must compare labelled items with its class vectors once a call, by its "
            f"{class_similarity(loss)}; it did so {len(found)} times. Name an objective and watch S (items, classes): "
            "LossScope('arcface', sides='item/proxy').watch(S, lossscope.Mask(match, torch.ones_like(match)))"
        )
    vectors = found[0].args[1].detach() if class_similarity(loss) == "distance" else None
    return ClassCall(embeddings, labels, found[0].result.shape[1], vectors)
