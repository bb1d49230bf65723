"""BFAN: cross attention in both directions that drops what is less relevant than the rest and attends anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .base import Encoder, EncoderSpec
from .layers.cross_attention import Clip, attention, cosines, dots, gram, lengths_of, mean
from .layers.scan_towers import Regions, Words, region_shape, region_side, require_positive, word_side
from .released.options import number
from .released.scan_family import REGIONS, chosen, named, only_regions_and_words, opened, sizes
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

Focal = Literal["equal", "prob"]
_FOCAL: dict[str, Focal] = {"equal": "equal", "prob": "prob"}
TIE = 1e-5  # relative difference of attention that rounding can make
_NOTICE = (
    "BFAN was trained on files of word ids; whether they hold <start> and <end> is not known. Compare its recalls with "
    "the published ones before relying on it"
)


@dataclass(frozen=True)
class BFAN(EncoderSpec):
    """S = mean_words cos(w, v_w) + mean_regions cos(r, v_r), v_i = Σ_j a'_ij c_j, a' = H a / Σ H a.

    a: SCAN's attention with clipped, l2-normalised similarities and λ = lambda_softmax. H keeps context element j of
    query i if it is more relevant than the others: `equal` a_ij > 1/L, `prob` a_ij > Σ_k a_ik^1.5 / Σ_k a_ik^0.5. H is
    constant to the gradient. Where it keeps nothing (equal attention, or one word only) the original divides 0 by 0;
    here a stays as it is. clip, dim, words, word_init: as in scan. S lies in [−2, 2], and so does the margin.
    Source: Liu et al. 2019.
    """

    focal: Focal = "equal"
    lambda_softmax: float = 20.0
    clip: Clip = "leaky"
    dim: int = 1024
    words: int = 300
    word_init: float = 0.1

    def __post_init__(self) -> None:
        require_positive(dim=self.dim, words=self.words, word_init=self.word_init, lambda_softmax=self.lambda_softmax)

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model for images of (regions, d). Raises InputError for other items."""
        return _Bfan(self, region_shape(item_shape, "bfan"), vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file whose options name `focal_type`; the tensors alone do not tell BFAN from SCAN."""
        options = original.options
        if "focal_type" not in options or not only_regions_and_words(original):
            return None
        weights = named(original)
        dim, width = sizes(weights, "image.fc.weight")
        spec = cls(
            focal=chosen(options, "focal_type", _FOCAL, "equal"),
            lambda_softmax=number(options, "lambda_softmax", 20.0),
            dim=dim,
            words=sizes(weights, "text.embed.weight")[1],
        )
        return opened(spec, weights, (REGIONS, width), options, [_NOTICE])


class _Bfan(Encoder):
    pairwise = True
    is_cosine = False
    score_min = -2.0
    score_max = 2.0

    def __init__(self, spec: BFAN, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.image = Regions(shape[1], spec.dim)
        self.text = Words(vocabulary_size, spec.words, spec.dim, True, spec.word_init)

    def encode_images(self, images: Items) -> EncodedBatch:
        return region_side(self.image, images)

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return word_side(self.text(ids, lengths), lengths)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        assert images.local is not None and texts.local is not None
        s = dots(images.local, texts.local)
        to_words = self._mean(s, images, texts)
        return to_words + self._mean(s.permute(3, 2, 1, 0).contiguous(), texts, images).T

    def _mean(self, s: Tensor, context: EncodedBatch, queries: EncodedBatch) -> Tensor:
        """Mean of r over the queries, (k, q), from s (k, C, Q, q)."""
        assert context.local is not None and queries.local is not None
        a = attention(s, self.spec.lambda_softmax, "clipped_l2norm", self.spec.clip, context.mask)
        r = cosines(focused(a, self.spec.focal, _sizes(context)), s, gram(context.local), lengths_of(queries.local))
        return mean(r, queries.mask)


def _sizes(side: EncodedBatch) -> Tensor:
    """(k,) how many of a side's elements are there."""
    assert side.local is not None
    if side.mask is None:
        return torch.full(side.local.shape[:1], side.local.shape[1], device=side.local.device)
    return side.lengths


def focused(a: Tensor, focal: Focal, lengths: Tensor) -> Tensor:
    """a' = H a / Σ_j H a over what is relevant, (k, C, Q, q); lengths: (k,) context elements that are there.

    What lies on the threshold but for rounding is not kept: with one query, all similarities above 0 become 1, and with
    them the attention of several elements becomes the same.
    """
    with torch.no_grad():
        if focal == "equal":
            threshold = (1 / lengths.to(a.dtype))[:, None, None, None]
        else:
            root = a.sqrt()
            threshold = (a * root).sum(1, keepdim=True) / root.sum(1, keepdim=True)
        keep = a > threshold * (1 + TIE)
        keep |= ~keep.any(1, keepdim=True)
    kept = a * keep
    return kept / kept.sum(1, keepdim=True)
