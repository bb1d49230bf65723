"""CE: experts of a video that gate each other, and for each expert a view of the caption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.collaborative_experts import CollaborativeGating, Gating
from .layers.expert_inputs import expert_widths, frame_mask, module_keys, require_experts, score_present_experts
from .layers.netvlad import NetVLAD
from .released.ce import open_ce
from .released.expert_config import parse_counts
from .released.known_options.ce import OPTIONS
from .released.option_table import OptionTable
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile


@dataclass(frozen=True)
class CE(EncoderSpec):
    """S = Σ_m w_m(t) a_m(v) ⟨t_m, e_m⟩ / Σ_m w_m(t) a_m(v) over experts m; a: 1 where a video has the expert, else 0.

    e_m: the expert's frames, pooled, at width dim, gated by the others (collaborative_experts.py). t_m: gated unit of
    the pooled words. All are unit vectors. w: softmax from the caption. Experts without `clusters` are averaged over
    frames.

    words=features reads vectors of width word_dim from a data set that has them (msrvtt:words=STEM), as the original;
    words=embedding learns vectors of a vocabulary. padded=true: pooling counts rows of zeros, up to `rows` of each
    expert and `length` words, and cuts off the rest; the original does so, as it does not use its mask.
    gating=sequential lets later experts (by name) see earlier ones already gated, as the original does; simultaneous is
    the paper's text. keep_missing=true: all experts count equally, present or not, and w is not used, so that S is a
    sum in ±M.

    Source: Liu et al. 2019.
    """

    released_options: ClassVar[OptionTable] = OPTIONS
    floors_median_rank: ClassVar[bool] = False

    dim: int = 768  # joint width
    clusters: str = "audio=8+ocr=43+speech=19"  # experts pooled by NetVLAD, with their numbers of clusters
    text_clusters: int = 28  # clusters of the words
    ghosts: int = 1  # ghost clusters of the words
    words: Literal["features", "embedding"] = "features"  # word vectors of the data set, or learnt ones of a vocabulary
    word_dim: int = 768  # width of a word vector
    word_init: float = 0.1  # learnt word vectors start uniform in ±word_init
    length: int = 37  # words of a caption at most
    padded: bool = False  # count rows of zeros in pooling, as the original does
    rows: str = "audio=29+ocr=49+speech=32"  # frames of each expert with padded=true; for the others all frames given
    gating: Gating = "sequential"  # gate experts one after the other, or all at once
    keep_missing: bool = False  # count missing experts too, and all experts equally

    def __post_init__(self) -> None:
        if min(self.dim, self.text_clusters, self.word_dim, self.length) < 1 or self.ghosts < 0:
            raise InputError("dim, text_clusters, word_dim and length of ce must be at least 1, ghosts at least 0")
        if not self.word_init > 0:
            raise InputError(f"word_init must be > 0; got {self.word_init}")
        _ = parse_counts("clusters", self.clusters), parse_counts("rows", self.rows)

    @property
    def reads_word_vectors(self) -> bool:
        """Whether it reads word vectors of the data set, and so needs no vocabulary."""
        return self.words == "features"

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model. Raises InputError for items that are no videos."""
        return _Ce(self, expert_widths(item_shape, "ce"), vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of one state dict with a `ce.moe_fc`."""
        return open_ce(cls, released)


class _Ce(Encoder):
    def __init__(self, spec: CE, experts: Mapping[str, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec, self.experts = spec, tuple(experts)
        self.rows = parse_counts("rows", spec.rows)
        if spec.keep_missing:
            self.is_cosine, self.score_min, self.score_max = False, -float(len(experts)), float(len(experts))
        clusters, self.keys = parse_counts("clusters", spec.clusters), module_keys(experts)
        pools = {self.keys[name]: NetVLAD(d, clusters[name]) for name, d in experts.items() if name in clusters}
        self.pooling = nn.ModuleDict(pools)
        self.text_pooling = NetVLAD(spec.word_dim, spec.text_clusters, spec.ghosts)
        widths = [pools[self.keys[name]].width if name in clusters else d for name, d in experts.items()]
        self.ce = CollaborativeGating(widths, self.text_pooling.width, spec.dim, spec.gating)
        if spec.words == "embedding":
            self.embed = nn.Embedding(vocabulary_size, spec.word_dim)
            nn.init.uniform_(self.embed.weight, -spec.word_init, spec.word_init)

    @property
    def is_dot_product(self) -> bool:
        """Whether no expert is left out, so that S is a product of vectors."""
        return self.spec.keep_missing

    def encode_images(self, images: Items) -> EncodedBatch:
        items = require_experts(images, self.experts)
        present = torch.stack([items[f"{name}.length"] > 0 for name in self.experts], 1).float()
        e = self.ce.encode_videos([self._pool_frames(items, name) for name in self.experts], present).float()
        if self.spec.keep_missing:
            return EncodedBatch(e.flatten(1))
        return EncodedBatch((e * present[..., None]).flatten(1), extra={"present": present})

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        words = self._word_vectors(ids)[:, : self.spec.length]
        present = torch.arange(words.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        t, w = self.ce.encode_texts(self._apply_netvlad(self.text_pooling, words, present, self.spec.length))
        if self.spec.keep_missing:
            return EncodedBatch(t.float().flatten(1))
        w = w.float()
        return EncodedBatch((w[..., None] * t).float().flatten(1), extra={"weights": w})

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if self.spec.keep_missing:
            return images.vectors @ texts.vectors.T
        return score_present_experts(images, texts)

    def _pool_frames(self, items: Mapping[str, Tensor], name: str) -> Tensor:
        """Return (n, width) of an expert; a missing one is 0 where frames are averaged."""
        features, present = items[name], frame_mask(items, name)
        key = self.keys[name]
        if key in self.pooling:
            return self._apply_netvlad(self.pooling[key], features, present, self.rows.get(name, features.shape[1]))
        total = features.masked_fill(~present[..., None], 0).sum(1)
        return total / present.sum(1, keepdim=True).clamp(min=1)

    def _apply_netvlad(self, netvlad: nn.Module, rows: Tensor, present: Tensor, length: int) -> Tensor:
        if not self.spec.padded:
            return netvlad(rows, present)  # type: ignore[no-any-return]
        filled = rows.masked_fill(~present[..., None], 0)[:, :length]
        return netvlad(pad(filled, (0, 0, 0, length - filled.shape[1])))  # type: ignore[no-any-return]

    def _word_vectors(self, ids: Tensor) -> Tensor:
        """Return (n, L, word_dim). Raises InputError when captions are not what the option `words` says."""
        if self.spec.words == "embedding" and ids.ndim == 2:
            return self.embed(ids)  # type: ignore[no-any-return]
        if self.spec.words == "features" and ids.ndim == 3 and ids.shape[2] == self.spec.word_dim:
            return ids
        got = "ids" if ids.ndim == 2 else f"vectors of width {ids.shape[2]}"
        raise InputError(
            f"captions must fit words={self.spec.words}, word_dim={self.spec.word_dim}; the data set gives {got}. "
            "Word vectors come from msrvtt:words=STEM; words=embedding learns them"
        )
