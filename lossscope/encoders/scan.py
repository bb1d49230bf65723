"""SCAN: each word attends to the regions (or each region to the words) before the two are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .base import Encoder, EncoderSpec
from .layers.cross_attention import (
    Clip,
    Norm,
    attended_cosines,
    attention_weights,
    dot_products,
    gram_matrices,
    mean_over_queries,
    vector_lengths,
)
from .layers.scan_towers import (
    RegionTower,
    WordTower,
    encode_regions,
    require_positive,
    require_region_shape,
    word_batch,
)
from .released.known_options.scan import OPTIONS
from .released.option_table import OptionTable
from .released.options import read_number
from .released.scan_family import (
    has_region_and_word_towers,
    is_bidirectional,
    open_model,
    prefixed_weights,
    read_towers,
    read_weight_norm,
    region_width,
    translate_option,
)
from .types import ANY_NUMBER, EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

Direction = Literal["t2i", "i2t"]
Pool = Literal["avg", "lse", "sum", "max"]
_DEFAULT_LAMBDA = {"t2i": 9.0, "i2t": 4.0}
_NORMS: tuple[Norm, ...] = ("clipped_l2norm", "l2norm", "clipped", "softmax", "no_norm")  # all that run there
_POOLS: dict[str, Pool] = {"LogSumExp": "lse", "Mean": "avg", "Max": "max", "Sum": "sum"}
_DIRECTIONS: dict[str, Direction] = {"t2i": "t2i", "i2t": "i2t"}


@dataclass(frozen=True)
class SCAN(EncoderSpec):
    """S = pool_i cos(q_i, v_i), v_i = Σ_j a_ij c_j, a_ij = softmax_j(λ s̃_ji), s_ji = <c_j, q_i>.

    direction=t2i has words as queries q and regions as context c, i2t the reverse. pool=lse is log Σ_i exp(λ_lse r_i) /
    λ_lse. norm says how s becomes s̃ (cross_attention.attention_weights); the original's l1norm and clipped_l1norm call
    a function that does not exist, here they divide by Σ_i |s_ji|. The paper clips to [s]_+, `hard`; the published
    code, and so all its checkpoints, let a tenth of negative similarities pass, `leaky`. A score of lse or sum grows
    with the number of queries, so in t2i it has no bound.

    Source: Lee et al. 2018.
    """

    released_options: ClassVar[OptionTable] = OPTIONS

    direction: Direction = "t2i"  # t2i: words attend to regions; i2t: regions attend to words
    pool: Pool = "avg"  # how the cosines of a pair become one score
    lambda_softmax: float | None = None  # λ of the attention; none for the original's 9 (t2i) or 4 (i2t)
    lambda_lse: float = 6.0  # λ_lse; 6 in t2i, 5 (Flickr30k) or 20 (COCO) in i2t
    norm: Norm = "clipped_l2norm"  # normalisation of similarities before the attention
    clip: Clip = "leaky"  # negative similarities: hard sets them to 0, leaky to a tenth
    bi_gru: bool = True  # read words in both directions, as in all published runs
    layers: int = 1  # number of GRUs, one over the states of the other
    weight_norm: bool = False  # the map of regions as g V / |V|
    no_imgnorm: bool = False  # do not scale vectors of regions to unit length
    no_txtnorm: bool = False  # do not scale vectors of words to unit length
    dim: int = 1024  # joint width
    words: int = 300  # width of a word vector
    word_init: float = 0.1  # word vectors start uniform in ±word_init

    def __post_init__(self) -> None:
        require_positive(dim=self.dim, words=self.words, word_init=self.word_init, lambda_lse=self.lambda_lse)
        require_positive(lambda_softmax=self.sharpness, layers=self.layers)

    @property
    def sharpness(self) -> float:
        """λ of the softmax."""
        return _DEFAULT_LAMBDA[self.direction] if self.lambda_softmax is None else self.lambda_softmax

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model for images of (regions, d). Raises InputError for other items."""
        return _Scan(self, require_region_shape(item_shape, "scan"), vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file whose options name `cross_attn`; the tensors alone do not distinguish SCAN from BFAN."""
        options = released.options
        if "cross_attn" not in options or "focal_type" in options or not has_region_and_word_towers(released):
            return None
        weights = prefixed_weights(released)
        spec = cls(
            direction=translate_option(options, "cross_attn", _DIRECTIONS, "t2i"),
            pool=translate_option(options, "agg_func", _POOLS, "LogSumExp"),
            lambda_softmax=read_number(options, "lambda_softmax", 9.0),
            lambda_lse=read_number(options, "lambda_lse", 6.0),
            norm=translate_option(options, "raw_feature_norm", {norm: norm for norm in _NORMS}, "clipped_l2norm"),
            bi_gru=is_bidirectional(weights, "text.rnn"),
            weight_norm=read_weight_norm(weights, options),
            **read_towers(weights, options, "text.rnn"),
        )
        return open_model(spec, weights, (ANY_NUMBER, region_width(weights)), options)


class _Scan(Encoder):
    pairwise = True

    def __init__(self, spec: SCAN, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.image = RegionTower(shape[1], spec.dim, spec.weight_norm, spec.no_imgnorm)
        self.text = WordTower(
            vocabulary_size, spec.words, spec.dim, spec.bi_gru, spec.word_init, spec.layers, spec.no_txtnorm
        )
        self.is_cosine = spec.pool in ("avg", "max")
        self.score_min, self.score_max = _score_range(spec, shape[0])

    def encode_images(self, images: Items) -> EncodedBatch:
        return encode_regions(self.image, images)

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return word_batch(self.text(ids, lengths), lengths)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        forward = self.spec.direction == "t2i"
        return self._score_attended(images, texts) if forward else self._score_attended(texts, images).T

    def _score_attended(self, context: EncodedBatch, queries: EncodedBatch) -> Tensor:
        """Return (k, q) scores of context items (k, C, D) and query items (q, Q, D)."""
        spec, present_queries = self.spec, queries.mask
        assert context.local is not None and queries.local is not None
        s = dot_products(context.local, queries.local)
        a = attention_weights(s, spec.sharpness, spec.norm, spec.clip, context.mask, present_queries)
        r = attended_cosines(a, s, gram_matrices(context.local), vector_lengths(queries.local))
        return pool_cosines(r, spec.pool, spec.lambda_lse, present_queries)


def pool_cosines(r: Tensor, pool: Pool, lambda_lse: float, present_queries: Tensor | None) -> Tensor:
    """Return one score from the cosines r_i of each pair: (k, Q, q) -> (k, q).

    Args:
        r: (k, Q, q).
        pool: the option.
        lambda_lse: the option.
        present_queries: (q, Q) bool; None for all.
    """
    if pool == "avg":
        return mean_over_queries(r, present_queries)
    if present_queries is not None:
        r = r.masked_fill(~present_queries.T, 0 if pool == "sum" else -torch.inf)
    if pool == "lse":
        return (lambda_lse * r).logsumexp(1) / lambda_lse
    return r.sum(1) if pool == "sum" else r.amax(1)


def _score_range(spec: SCAN, regions: int) -> tuple[float, float]:
    """Return the least and the greatest score; the number of words in a caption has no bound."""
    queries = regions if spec.direction == "i2t" and regions != ANY_NUMBER else math.inf
    if spec.pool == "sum":
        return -queries, queries
    return -1.0, 1.0 + (math.log(queries) / spec.lambda_lse if spec.pool == "lse" else 0.0)
