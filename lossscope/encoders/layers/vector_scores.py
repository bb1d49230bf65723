"""Vectors and their scores as VSE++ and VSRN have them: cosine, dot product or order measure, with absolute values."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise

from ..base import Encoder
from ..types import EncodedBatch

Measure = Literal["cosine", "order"]

_PAIRS_PER_CHUNK = 1 << 14  # pairs whose differences are in memory at a time


class VectorEncoder(Encoder):
    """One vector an item: cosine and dot product as every encoder has them, the order measure a pair at a time.

    Args:
        image: the tower of images, which encode_images reads.
        text: the tower of captions, ids and lengths -> (n, d).
        measure: score of two vectors.
        use_abs: take absolute values of the vectors.
        no_imgnorm: do not scale the vectors of images to unit length.
    """

    def __init__(self, image: nn.Module, text: nn.Module, measure: Measure, use_abs: bool, no_imgnorm: bool) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.use_abs, self.no_imgnorm = use_abs, no_imgnorm
        self.pairwise = measure == "order"
        self.pairs_per_chunk = _PAIRS_PER_CHUNK
        self.is_cosine = measure == "cosine" and not no_imgnorm
        self.score_min, self.score_max = _score_range(measure, not no_imgnorm)

    def finish_images(self, vectors: Tensor) -> Tensor:
        """Return the vectors of images as they are compared, (n, d) float32."""
        return _finish_vectors(vectors, not self.no_imgnorm, self.use_abs)

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return EncodedBatch(_finish_vectors(self.text(ids, lengths), True, self.use_abs))

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        return _order_scores(images.vectors, texts.vectors)


def _finish_vectors(vectors: Tensor, unit: bool, use_abs: bool) -> Tensor:
    """(n, d) -> float32, scaled to unit length where `unit`, then absolute values where `use_abs`."""
    scaled = normalise(vectors.float()) if unit else vectors.float()
    return scaled.abs() if use_abs else scaled


def _order_scores(images: Tensor, texts: Tensor) -> Tensor:
    """−|max(0, t − v)|, (n, m); its slope is 0 where no coordinate of t is above v's."""
    above = (texts[None, :, :] - images[:, None, :]).relu()
    return -torch.linalg.vector_norm(above, dim=2)  # type: ignore[no-any-return]


def _score_range(measure: Measure, unit: bool) -> tuple[float, float]:
    """Return the least and the greatest possible score; `unit` is whether images have unit length, as captions do."""
    if measure == "order":
        return (-2.0 if unit else -float("inf")), 0.0
    return (-1.0, 1.0) if unit else (-float("inf"), float("inf"))
