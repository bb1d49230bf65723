"""SGRAF: vectors of similarity between a caption and an image, reasoned over (SGR) or filtered (SAF), then scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.chunked_scores import by_length, two_pass
from .layers.cross_attention import Clip, attended_lengths, attention, dots, gram
from .layers.global_attention import RegionSummary, WordSummary
from .layers.initialisation import embedding, xavier
from .layers.scan_towers import EPS, Regions, region_shape, region_side, require_positive, states, unit, word_side
from .layers.sgraf_graph import Filtration, Note, Reasoning, Seen, reasoned
from .released.options import tensor_of
from .released.scan_family import named, opened, sizes
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

_SLOTS = "similarity.v_global_w.embedding_local.1.running_mean"  # one number for each region


@dataclass(frozen=True)
class SGRAF(EncoderSpec):
    """S = sigmoid(w' x + b), x from nodes unit(W_l (v_w − e_w)²) and unit(W_g (ī − t̄)²), squares by element.

    v_w: unit vector that word e_w attends to (SCAN's t2i attention). ī, t̄: self-attended global vectors. module: sgr,
    `steps` of reasoning over the nodes of a pair, x the global node; saf, x their gated mean. lambda_softmax: fixed to
    9 in the original. dim: joint width. words: width of a word vector, starting uniform in ±word_init. sim_dim: width
    of a node. dropout: on word vectors and inside the self-attention. clip, bi_gru: as in scan. A batch norm has one
    channel for each region, so a model takes the number of regions that it was built for (36 in the original). S lies
    in (0, 1), about 0.5 at first. SGRAF is the mean of S of two models trained apart. Source: Diao et al. 2021.
    """

    module: Literal["saf", "sgr"] = "sgr"
    steps: int = 3
    lambda_softmax: float = 9.0
    clip: Clip = "leaky"
    bi_gru: bool = True
    dim: int = 1024
    words: int = 300
    sim_dim: int = 256
    dropout: float = 0.4
    word_init: float = 0.1

    def __post_init__(self) -> None:
        require_positive(steps=self.steps, dim=self.dim, words=self.words, sim_dim=self.sim_dim)
        require_positive(word_init=self.word_init, lambda_softmax=self.lambda_softmax)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1); got {self.dropout}")

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model for images of (regions, d). Raises InputError for other items."""
        return _Sgraf(self, region_shape(item_shape, "sgraf"), vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of three towers whose text tower has a `cap_rnn`."""
        if len(original.towers) != 3 or not any(name.startswith("cap_rnn.") for name in original.towers[1]):
            return None
        weights = named(original)
        dim, width = sizes(weights, "image.fc.weight")
        steps = {name.split(".")[2] for name in weights if name.startswith("similarity.SGR_module.")}
        spec = cls(
            module="sgr" if steps else "saf",
            steps=len(steps) or cls.steps,
            bi_gru="text.cap_rnn.weight_ih_l0_reverse" in weights,
            dim=dim,
            words=sizes(weights, "text.embed.weight")[1],
            sim_dim=sizes(weights, "similarity.sim_tranloc_w.weight")[0],
        )
        shape = (len(tensor_of(weights, _SLOTS, 1)), width)
        return opened(spec, weights, shape, {"max_violation": True, **original.options})  # on, unless switched off


class _Sgraf(Encoder):
    pairwise = True
    is_cosine = False
    score_min = 0.0
    pairs_at_once = 512

    def __init__(self, spec: SGRAF, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.regions = shape[0]
        self.image = Regions(shape[1], spec.dim)
        self.text = _Words(spec, vocabulary_size)
        self.similarity = _Similarity(spec, shape[0])

    def encode_images(self, images: Items) -> EncodedBatch:
        side = region_side(self.image, images)
        assert side.local is not None
        if side.local.shape[1] != self.regions:
            raise InputError(f"images must have {self.regions} regions; got {side.local.shape[1]}")
        return EncodedBatch(None, side.local, side.mask, {"whole": self.similarity.v_global_w(side.local)})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        side = word_side(self.text(ids, lengths), lengths)
        return EncodedBatch(None, side.local, side.mask, {"whole": self.similarity.t_global_w(side.local, side.mask)})

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """S (n, m). Training SAF, a caption meets all images at once, and the running statistics are updated."""
        if self.spec.module == "sgr" or not self.training:
            return two_pass(self.score_pairs, images, texts, self.pairs_at_once)
        seen = Seen()
        score = partial(self.similarity, note=seen.note)
        S = two_pass(score, images, texts, self.pairs_at_once, seen.closed, len(images))
        self.similarity.SAF_module.remember(*seen.in_order(by_length(texts)))
        return S

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        return self.similarity(images, texts)  # type: ignore[no-any-return]


class _Words(nn.Module):
    def __init__(self, spec: SGRAF, vocabulary_size: int) -> None:
        super().__init__()
        self.embed = embedding(vocabulary_size, spec.words, spec.word_init)
        self.dropout = nn.Dropout(spec.dropout)
        self.cap_rnn = nn.GRU(spec.words, spec.dim, batch_first=True, bidirectional=spec.bi_gru)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        return unit(states(self.cap_rnn, self.dropout(self.embed(ids)), lengths))


class _Similarity(nn.Module):
    def __init__(self, spec: SGRAF, regions: int) -> None:
        super().__init__()
        self.spec = spec
        self.v_global_w = RegionSummary(spec.dim, regions, spec.dropout)
        self.t_global_w = WordSummary(spec.dim, spec.dropout)
        self.sim_tranloc_w = xavier(nn.Linear(spec.dim, spec.sim_dim))
        self.sim_tranglo_w = xavier(nn.Linear(spec.dim, spec.sim_dim))
        self.sim_eval_w = xavier(nn.Linear(spec.sim_dim, 1))
        if spec.module == "sgr":
            self.SGR_module = nn.ModuleList(Reasoning(spec.sim_dim) for _ in range(spec.steps))
        else:
            self.SAF_module = Filtration(spec.sim_dim)

    def forward(self, images: EncodedBatch, texts: EncodedBatch, note: Note | None = None) -> Tensor:
        nodes = self._nodes(images, texts)
        mask = None if texts.mask is None else functional.pad(texts.mask, (1, 0), value=True)
        if self.spec.module == "sgr":
            found = reasoned(self.SGR_module, nodes, mask)
        else:
            found = self.SAF_module(nodes, mask, note)
        return self.sim_eval_w(found).squeeze(2).sigmoid()  # type: ignore[no-any-return]

    def _nodes(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """(n, m, 1 + W, sim_dim)."""
        difference = self._differences(images, texts)
        words = self.sim_tranloc_w(_squared(difference)).unflatten(1, (-1, len(texts))).transpose(1, 2)
        whole = self.sim_tranglo_w((images.extra["whole"][:, None] - texts.extra["whole"]).square())
        return unit(torch.cat([whole[:, :, None], words], 2))

    def _differences(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """v_w − e_w, (n, W m, D), words before captions; |v_w| = 1 comes from the weights, not from the vectors."""
        assert images.local is not None and texts.local is not None
        regions, words = images.local, texts.local.transpose(0, 1).flatten(0, 1)
        a = attention(dots(regions, texts.local), self.spec.lambda_softmax, "clipped_l2norm", self.spec.clip)
        a = a / (attended_lengths(a, gram(regions)) + EPS)[:, None]
        return torch.baddbmm(words, a.flatten(2).transpose(1, 2), regions, beta=-1)


def _squared(x: Tensor) -> Tensor:
    """x² by element, in the place of x where no gradient needs it."""
    return x.square() if x.requires_grad else x.mul_(x)
