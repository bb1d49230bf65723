"""From the mask of a batch to which of its items are positives of which."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.core.types import Rows

from .observed import Observed


def relations_of(observed: Observed) -> Relations:
    """Return the positives and mined negatives between the rows and columns of a batch, or the labels of one set."""
    assert observed.rows is not None
    mask = observed.rows.mask
    return relations_of_mask((mask.match & mask.valid).cpu(), observed.sides, observed.mined)


def relations_of_mask(match: Tensor, sides: Sides, mined: int = 0) -> Relations:
    """Return the relations that a mask states.

    Args:
        match: (n, m) bool, positives.
        sides: names of both sides.
        mined: mined negatives of each row, whose columns stand row by row behind the first n.
    """
    n, m = match.shape
    if sides.is_one_set:
        return Relations.of_labels(labels_of(match), sides.first)
    negatives = None
    if mined and m == n * (1 + mined):
        negatives = n + np.arange(n * mined, dtype=np.int64).reshape(n, mined)
    return Relations(n, m, match.nonzero().numpy().astype(np.int64), sides, None, negatives)


def labels_of(match: Tensor) -> Rows:
    """Return a label of each item of one set, (n,): the first item that it matches, or itself."""
    same = match | torch.eye(len(match), dtype=torch.bool)
    labels: Rows = same.to(torch.uint8).argmax(1).numpy().astype(np.int64)
    return labels
