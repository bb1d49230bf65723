"""SGRAF: vectors of similarity between a caption and an image, reasoned over (SGR) or filtered (SAF), then scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.chunked_scores import order_by_length, score_in_chunks
from .layers.cross_attention import Clip, attended_lengths, attention_weights, dot_products, gram_matrices
from .layers.global_attention import RegionSummary, WordSummary
from .layers.initialisation import build_embedding, init_xavier
from .layers.scan_towers import (
    EPS,
    RegionTower,
    encode_regions,
    gru_states,
    require_positive,
    require_region_shape,
    unit,
    word_batch,
)
from .layers.sgraf_graph import AttentionFiltration, NormStatistics, ReasoningStep, RecordStatistics, reason
from .released.known_options.sgraf import OPTIONS
from .released.option_table import OptionTable
from .released.sgraf import open_sgraf
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile


@dataclass(frozen=True)
class SGRAF(EncoderSpec):
    """S = sigmoid(w' x + b), x from nodes unit(W_l (v_w − e_w)²) and unit(W_g (ī − t̄)²), squares by element.

    v_w: unit vector that word e_w attends to (SCAN's t2i attention). ī, t̄: self-attended global vectors. module=sgr:
    steps of reasoning over the nodes of a pair, x is the global node; saf: x is their gated mean. A batch norm has one
    channel for each region, so a model takes only the number of regions that it was built for (36 in the original). S
    lies in (0, 1), about 0.5 at first. SGRAF is the mean of S of two models trained apart.

    Source: Diao et al. 2021.
    """

    released_options: ClassVar[OptionTable] = OPTIONS

    module: Literal["saf", "sgr"] = "sgr"  # sgr: similarity graph reasoning; saf: similarity attention filtration
    steps: int = 3  # of reasoning, for sgr
    lambda_softmax: float = 9.0  # λ of the attention; always 9 in the original
    clip: Clip = "leaky"  # negative similarities, as in scan: hard sets them to 0, leaky to a tenth
    bi_gru: bool = True  # read words in both directions
    layers: int = 1  # number of GRUs, one over the states of the other
    no_imgnorm: bool = False  # do not scale vectors of regions to unit length
    no_txtnorm: bool = False  # do not scale vectors of words to unit length
    dim: int = 1024  # joint width
    words: int = 300  # width of a word vector
    sim_dim: int = 256  # width of a node
    dropout: float = 0.4  # on word vectors and inside the self-attention
    word_init: float = 0.1  # word vectors start uniform in ±word_init

    def __post_init__(self) -> None:
        require_positive(steps=self.steps, layers=self.layers, dim=self.dim, words=self.words, sim_dim=self.sim_dim)
        require_positive(word_init=self.word_init, lambda_softmax=self.lambda_softmax)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1); got {self.dropout}")

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model for images of (regions, d). Raises InputError for other items."""
        return _Sgraf(self, require_region_shape(item_shape, "sgraf"), vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of three towers whose text tower has a `cap_rnn`."""
        return open_sgraf(cls, released)


class _Sgraf(Encoder):
    pairwise = True
    is_cosine = False
    score_min = 0.0
    pairs_per_chunk = 512

    def __init__(self, spec: SGRAF, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.regions = shape[0]
        self.image = RegionTower(shape[1], spec.dim, raw=spec.no_imgnorm)
        self.text = _Words(spec, vocabulary_size)
        self.similarity = _Similarity(spec, shape[0])

    def encode_images(self, images: Items) -> EncodedBatch:
        regions = encode_regions(self.image, images)
        assert regions.local is not None
        if regions.local.shape[1] != self.regions:
            raise InputError(f"images must have {self.regions} regions; got {regions.local.shape[1]}")
        return EncodedBatch(None, regions.local, regions.mask, {"summary": self.similarity.v_global_w(regions.local)})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        words = word_batch(self.text(ids, lengths), lengths)
        return EncodedBatch(
            None, words.local, words.mask, {"summary": self.similarity.t_global_w(words.local, words.mask)}
        )

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """Return S (n, m). In training SAF scores a caption with all images at once and updates running statistics."""
        if self.spec.module == "sgr" or not self.training:
            return score_in_chunks(self.score_pairs, images, texts, self.pairs_per_chunk)
        statistics = NormStatistics()
        score = partial(self.similarity, record=statistics.record)
        S = score_in_chunks(score, images, texts, self.pairs_per_chunk, statistics.pause, len(images))
        self.similarity.SAF_module.update_running(*statistics.reorder(order_by_length(texts)))
        return S

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        return self.similarity(images, texts)  # type: ignore[no-any-return]


class _Words(nn.Module):
    def __init__(self, spec: SGRAF, vocabulary_size: int) -> None:
        super().__init__()
        self.embed = build_embedding(vocabulary_size, spec.words, spec.word_init)
        self.dropout = nn.Dropout(spec.dropout)
        self.cap_rnn = nn.GRU(spec.words, spec.dim, spec.layers, batch_first=True, bidirectional=spec.bi_gru)
        self.raw = spec.no_txtnorm

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states = gru_states(self.cap_rnn, self.dropout(self.embed(ids)), lengths)
        return states if self.raw else unit(states)


class _Similarity(nn.Module):
    def __init__(self, spec: SGRAF, regions: int) -> None:
        super().__init__()
        self.spec = spec
        self.v_global_w = RegionSummary(spec.dim, regions, spec.dropout)
        self.t_global_w = WordSummary(spec.dim, spec.dropout)
        self.sim_tranloc_w = init_xavier(nn.Linear(spec.dim, spec.sim_dim))
        self.sim_tranglo_w = init_xavier(nn.Linear(spec.dim, spec.sim_dim))
        self.sim_eval_w = init_xavier(nn.Linear(spec.sim_dim, 1))
        if spec.module == "sgr":
            self.SGR_module = nn.ModuleList(ReasoningStep(spec.sim_dim) for _ in range(spec.steps))
        else:
            self.SAF_module = AttentionFiltration(spec.sim_dim)

    def forward(self, images: EncodedBatch, texts: EncodedBatch, record: RecordStatistics | None = None) -> Tensor:
        nodes = self._nodes(images, texts)
        mask = None if texts.mask is None else functional.pad(texts.mask, (1, 0), value=True)
        if self.spec.module == "sgr":
            x = reason(self.SGR_module, nodes, mask)
        else:
            x = self.SAF_module(nodes, mask, record)
        return self.sim_eval_w(x).squeeze(2).sigmoid()  # type: ignore[no-any-return]

    def _nodes(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """Return (n, m, 1 + W, sim_dim)."""
        difference = self._differences(images, texts)
        words = self.sim_tranloc_w(_square(difference)).unflatten(1, (-1, len(texts))).transpose(1, 2)
        global_node = self.sim_tranglo_w((images.extra["summary"][:, None] - texts.extra["summary"]).square())
        return unit(torch.cat([global_node[:, :, None], words], 2))

    def _differences(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """Return v_w − e_w, (n, W m, D), words before captions; the weights are scaled so that |v_w| = 1."""
        assert images.local is not None and texts.local is not None
        regions, words = images.local, texts.local.transpose(0, 1).flatten(0, 1)
        a = attention_weights(
            dot_products(regions, texts.local), self.spec.lambda_softmax, "clipped_l2norm", self.spec.clip
        )
        a = a / (attended_lengths(a, gram_matrices(regions)) + EPS)[:, None]
        return torch.baddbmm(words, a.flatten(2).transpose(1, 2), regions, beta=-1)


def _square(x: Tensor) -> Tensor:
    """x² by element, in the memory of x where no gradient needs it."""
    return x.square() if x.requires_grad else x.mul_(x)
