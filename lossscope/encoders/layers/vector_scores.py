"""Vectors and their scores as VSE++ and VSRN have them: cosine, dot product or order measure, with absolute values."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from lossscope.core.similarity import normalise

Measure = Literal["cosine", "order"]

PAIRS_PER_CHUNK = 1 << 14  # pairs whose differences are in memory at a time


def finish_vectors(vectors: Tensor, unit: bool, use_abs: bool) -> Tensor:
    """(n, d) -> float32, scaled to unit length where `unit`, then absolute values where `use_abs`."""
    scaled = normalise(vectors.float()) if unit else vectors.float()
    return scaled.abs() if use_abs else scaled


def order_scores(images: Tensor, texts: Tensor) -> Tensor:
    """−|max(0, t − v)|, (n, m); its slope is 0 where no coordinate of t is above v's."""
    above = (texts[None, :, :] - images[:, None, :]).relu()
    return -torch.linalg.vector_norm(above, dim=2)  # type: ignore[no-any-return]


def score_range(measure: Measure, unit: bool) -> tuple[float, float]:
    """Return the least and the greatest possible score; `unit` is whether images have unit length, as captions do."""
    if measure == "order":
        return (-2.0 if unit else -float("inf")), 0.0
    return (-1.0, 1.0) if unit else (-float("inf"), float("inf"))
