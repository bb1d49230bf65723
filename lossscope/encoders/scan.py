"""SCAN: every word looks at the regions (or every region at the words) before the two are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .base import Encoder, EncoderSpec
from .layers.cross_attention import Clip, Norm, attention, cosines, dots, gram, lengths_of, mean
from .layers.scan_towers import Regions, Words, region_shape, region_side, require_positive, word_side
from .released.options import number
from .released.scan_family import REGIONS, chosen, named, only_regions_and_words, opened, sizes
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

Direction = Literal["t2i", "i2t"]
Pool = Literal["avg", "lse", "sum", "max"]
_SHARPNESS = {"t2i": 9.0, "i2t": 4.0}
_NORMS: tuple[Norm, ...] = ("clipped_l2norm", "l2norm", "clipped_l1norm", "l1norm", "clipped", "softmax", "no_norm")
_POOLS: dict[str, Pool] = {"LogSumExp": "lse", "Mean": "avg", "Max": "max", "Sum": "sum"}
_DIRECTIONS: dict[str, Direction] = {"t2i": "t2i", "i2t": "i2t"}


@dataclass(frozen=True)
class SCAN(EncoderSpec):
    """S = pool_i cos(q_i, v_i), v_i = Σ_j a_ij c_j, a_ij = softmax_j(λ s̃_ji), s_ji = <c_j, q_i>.

    direction: t2i has words as queries q and regions as context c, i2t the other way round. pool: avg; lse, which is
    log Σ_i exp(λ_lse r_i) / λ_lse; sum; max. lambda_softmax: λ; None for the original's 9 (t2i) or 4 (i2t).
    lambda_lse: 6 in t2i, 5 (Flickr30k) or 20 (COCO) in i2t. norm: how s becomes s̃ (crossattention.attention); the
    original's l1norm and clipped_l1norm call a function that is not there, here they divide by Σ_i |s_ji|.
    clip: the paper writes [s]_+, `hard`; the published code and so all its checkpoints let a tenth of a negative
    similarity through, `leaky`. bi_gru: words read in both directions, as in all published runs. weight_norm: the
    region map as g V / |V|. dim: joint width. words: width of a word vector, starting uniform in ±word_init.
    A score of lse or sum grows with the number of queries, so in t2i it has no bound. Source: Lee et al. 2018.
    """

    direction: Direction = "t2i"
    pool: Pool = "avg"
    lambda_softmax: float | None = None
    lambda_lse: float = 6.0
    norm: Norm = "clipped_l2norm"
    clip: Clip = "leaky"
    bi_gru: bool = True
    weight_norm: bool = False
    dim: int = 1024
    words: int = 300
    word_init: float = 0.1

    def __post_init__(self) -> None:
        require_positive(dim=self.dim, words=self.words, word_init=self.word_init, lambda_lse=self.lambda_lse)
        require_positive(lambda_softmax=self.sharpness)

    @property
    def sharpness(self) -> float:
        """λ of the softmax."""
        return _SHARPNESS[self.direction] if self.lambda_softmax is None else self.lambda_softmax

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model for images of (regions, d). Raises InputError for other items."""
        return _Scan(self, region_shape(item_shape, "scan"), vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file whose options name `cross_attn`; the tensors alone do not tell SCAN from BFAN."""
        options = original.options
        if "cross_attn" not in options or "focal_type" in options or not only_regions_and_words(original):
            return None
        weights = named(original)
        scaled = "image.fc.weight_v" in weights
        dim, width = sizes(weights, "image.fc.weight_v" if scaled else "image.fc.weight")
        spec = cls(
            direction=chosen(options, "cross_attn", _DIRECTIONS, "t2i"),
            pool=chosen(options, "agg_func", _POOLS, "LogSumExp"),
            lambda_softmax=number(options, "lambda_softmax", 9.0),
            lambda_lse=number(options, "lambda_lse", 6.0),
            norm=chosen(options, "raw_feature_norm", {norm: norm for norm in _NORMS}, "clipped_l2norm"),
            bi_gru="text.rnn.weight_ih_l0_reverse" in weights,
            weight_norm=scaled,
            dim=dim,
            words=sizes(weights, "text.embed.weight")[1],
        )
        return opened(spec, weights, (REGIONS, width), options)


class _Scan(Encoder):
    pairwise = True

    def __init__(self, spec: SCAN, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.image = Regions(shape[1], spec.dim, spec.weight_norm)
        self.text = Words(vocabulary_size, spec.words, spec.dim, spec.bi_gru, spec.word_init)
        self.is_cosine = spec.pool in ("avg", "max")
        self.score_min, self.score_max = _range(spec, shape[0])

    def encode_images(self, images: Items) -> EncodedBatch:
        return region_side(self.image, images)

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return word_side(self.text(ids, lengths), lengths)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        forward = self.spec.direction == "t2i"
        return self._pooled(images, texts) if forward else self._pooled(texts, images).T

    def _pooled(self, context: EncodedBatch, queries: EncodedBatch) -> Tensor:
        """(k, q) from context items (k, C, D) and query items (q, Q, D)."""
        spec, asked = self.spec, queries.mask
        assert context.local is not None and queries.local is not None
        s = dots(context.local, queries.local)
        a = attention(s, spec.sharpness, spec.norm, spec.clip, context.mask, asked)
        r = cosines(a, s, gram(context.local), lengths_of(queries.local))
        return pooled(r, spec.pool, spec.lambda_lse, asked)


def pooled(r: Tensor, pool: Pool, lambda_lse: float, asked: Tensor | None) -> Tensor:
    """One number from the r_i of a pair: (k, Q, q) -> (k, q). asked: (q, Q) bool of the queries there, None for all."""
    if pool == "avg":
        return mean(r, asked)
    if asked is not None:
        r = r.masked_fill(~asked.T, 0 if pool == "sum" else -torch.inf)
    if pool == "lse":
        return (lambda_lse * r).logsumexp(1) / lambda_lse
    return r.sum(1) if pool == "sum" else r.amax(1)


def _range(spec: SCAN, regions: int) -> tuple[float, float]:
    """Least and greatest score; the words of a caption have no greatest number."""
    queries = regions if spec.direction == "i2t" else math.inf
    if spec.pool == "sum":
        return -queries, queries
    return -1.0, 1.0 + (math.log(queries) / spec.lambda_lse if spec.pool == "lse" else 0.0)
