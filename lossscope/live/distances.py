"""From a matrix that a distance of pytorch-metric-learning computed to similarities, and from dL/dd to dL/dS."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def similarity_of(distance: Any, d: Tensor) -> tuple[Tensor, Tensor]:
    """Return S of a matrix that a distance computed, and what dL/d(matrix) is multiplied by to be dL/dS.

    The cosine, where the matrix is one, or d^k of unit vectors at d = √(2 − 2s); otherwise S is minus the matrix.
    """
    d = d.float()
    if distance.is_inverted:
        return d, torch.ones_like(d)
    of_unit_vectors = type(distance).__name__ == "LpDistance" and distance.p == 2 and distance.normalize_embeddings
    if not of_unit_vectors:
        return -d, -torch.ones_like(d)
    power = float(distance.power)
    length = d if power == 1 else d.clamp(min=0).pow(1 / power)
    slope = -power * length.clamp(min=torch.finfo(d.dtype).tiny).pow(power - 2)
    return 1 - length.square() / 2, slope.where(length > 0, 0.0)
