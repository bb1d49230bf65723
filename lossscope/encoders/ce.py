"""CE: experts of a video that gate each other, and for each expert a view of the caption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.collaborative_experts import Collaboration, Gating
from .layers.expert_inputs import experts_of, keys_of, over_present, present, videos
from .layers.netvlad import NetVLAD
from .released.ce import opened_ce
from .released.expert_config import counts
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape


@dataclass(frozen=True)
class CE(EncoderSpec):
    """S = Σ_m w_m(t) a_m(v) ⟨t_m, e_m⟩ / Σ_m w_m(t) a_m(v) over experts m; a: 1 where a video has the expert, else 0.

    e_m: the expert's frames, pooled, at width dim, gated by the others (collaboration.py); t_m: gated unit of the
    words, pooled; all unit vectors. w: softmax from the caption. clusters: experts that NetVLAD pools, with their
    clusters, `audio=8+ocr=43`; the others are averaged over their frames. text_clusters, ghosts: of the words.
    words: `features`, vectors of width word_dim from a data set that has them (msrvtt:words=STEM), as in the original;
    `embedding`, learnt ones, uniform in ±word_init, of a vocabulary. length: words of a caption at most.
    padded: pooling counts rows of zeros, up to `rows` of each expert and `length` words, and cuts off what is behind;
    the original does, by not using its mask. gating: `sequential` lets later experts (by name) see earlier ones
    already gated, as the original does; `simultaneous` is the paper's text. keep_missing: every expert counts once,
    there or not, and w is not used, S then being a sum in ±M. Source: Liu et al. 2019.
    """

    dim: int = 768
    clusters: str = "audio=8+ocr=43+speech=19"
    text_clusters: int = 28
    ghosts: int = 1
    words: Literal["features", "embedding"] = "features"
    word_dim: int = 768
    word_init: float = 0.1
    length: int = 37
    padded: bool = False
    rows: str = "audio=29+ocr=49+speech=32"
    gating: Gating = "sequential"
    keep_missing: bool = False

    def __post_init__(self) -> None:
        if min(self.dim, self.text_clusters, self.word_dim, self.length) < 1 or self.ghosts < 0:
            raise InputError("dim, text_clusters, word_dim and length of ce must be at least 1, ghosts at least 0")
        if not self.word_init > 0:
            raise InputError(f"word_init must be > 0; got {self.word_init}")
        _ = counts("clusters", self.clusters), counts("rows", self.rows)

    @property
    def wordless(self) -> bool:
        """Whether it reads vectors of words, so that it has no use for a vocabulary."""
        return self.words == "features"

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model. Raises InputError for items that are no videos."""
        return _Ce(self, experts_of(item_shape, "ce"), vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of one state dict with a `ce.moe_fc`."""
        return opened_ce(cls, original)


class _Ce(Encoder):
    def __init__(self, spec: CE, experts: Mapping[str, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec, self.experts = spec, tuple(experts)
        self.rows = counts("rows", spec.rows)
        if spec.keep_missing:
            self.is_cosine, self.score_min, self.score_max = False, -float(len(experts)), float(len(experts))
        clusters, self.keys = counts("clusters", spec.clusters), keys_of(experts)
        pools = {self.keys[name]: NetVLAD(d, clusters[name]) for name, d in experts.items() if name in clusters}
        self.pooling = nn.ModuleDict(pools)
        self.text_pooling = NetVLAD(spec.word_dim, spec.text_clusters, spec.ghosts)
        widths = [pools[self.keys[name]].width if name in clusters else d for name, d in experts.items()]
        self.ce = Collaboration(widths, self.text_pooling.width, spec.dim, spec.gating)
        if spec.words == "embedding":
            self.embed = nn.Embedding(vocabulary_size, spec.word_dim)
            nn.init.uniform_(self.embed.weight, -spec.word_init, spec.word_init)

    @property
    def dot(self) -> bool:
        """Whether no expert is left out, so that S is a product of vectors."""
        return self.spec.keep_missing

    def encode_images(self, images: Items) -> EncodedBatch:
        items = videos(images, self.experts)
        there = torch.stack([items[f"{name}.length"] > 0 for name in self.experts], 1).float()
        e = self.ce.videos([self._pooled(items, name) for name in self.experts], there).float()
        if self.spec.keep_missing:
            return EncodedBatch(e.flatten(1))
        return EncodedBatch((e * there[..., None]).flatten(1), extra={"present": there})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        words = self._words(ids)[:, : self.spec.length]
        there = torch.arange(words.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        t, w = self.ce.texts(self._vlad(self.text_pooling, words, there, self.spec.length))
        if self.spec.keep_missing:
            return EncodedBatch(t.float().flatten(1))
        w = w.float()
        return EncodedBatch((w[..., None] * t).float().flatten(1), extra={"weights": w})

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if self.spec.keep_missing:
            return images.vectors @ texts.vectors.T
        return over_present(images, texts)

    def _pooled(self, items: Mapping[str, Tensor], name: str) -> Tensor:
        """(n, width) of an expert; a missing one is 0 where it is averaged."""
        features, there = items[name], present(items, name)
        key = self.keys[name]
        if key in self.pooling:
            return self._vlad(self.pooling[key], features, there, self.rows.get(name, features.shape[1]))
        total = features.masked_fill(~there[..., None], 0).sum(1)
        return total / there.sum(1, keepdim=True).clamp(min=1)

    def _vlad(self, pool: nn.Module, rows: Tensor, there: Tensor, most: int) -> Tensor:
        if not self.spec.padded:
            return pool(rows, there)  # type: ignore[no-any-return]
        filled = rows.masked_fill(~there[..., None], 0)[:, :most]
        return pool(pad(filled, (0, 0, 0, most - filled.shape[1])))  # type: ignore[no-any-return]

    def _words(self, ids: Tensor) -> Tensor:
        """(n, L, word_dim). Raises InputError when captions are not what `words` says."""
        if self.spec.words == "embedding" and ids.ndim == 2:
            return self.embed(ids)  # type: ignore[no-any-return]
        if self.spec.words == "features" and ids.ndim == 3 and ids.shape[2] == self.spec.word_dim:
            return ids
        got = "ids" if ids.ndim == 2 else f"vectors of width {ids.shape[2]}"
        raise InputError(
            f"captions must fit words={self.spec.words}, word_dim={self.spec.word_dim}; the data set gives {got}. "
            "Word vectors come from msrvtt:words=STEM; words=embedding learns them"
        )
