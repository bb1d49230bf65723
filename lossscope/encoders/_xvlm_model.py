"""X-VLM's model: the two vectors of a picture and a caption, the logit of both together, and the losses beside S."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, cosine, normalise

from .base import Encoder
from .layers.chunked_scores import two_pass
from .layers.cross_encoder import Body, BodyPlan
from .layers.image_augmentation import flip, random_resized_crop
from .layers.image_text_matching import Drawn, best, contrast, drawn, reranked
from .layers.swin import Swin, SwinPlan
from .types import EncodedBatch, Items

_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class How:
    """What S is, and the losses beside it: the weight of the matching loss (0: none), contrast where S is itm."""

    score: Literal["itc", "itm"]
    k_test: int
    matching: float
    contrast: bool
    augment: bool


_SPARED = ("bias", "LayerNorm.weight", "norm.weight", "norm1.weight", "norm2.weight")


class Model(Encoder):
    """v, t and the fused [CLS] of a pair; vision_encoder, text_encoder, vision_proj, text_proj, temp, itm_head."""

    def __init__(self, swin: SwinPlan, size: int, body: BodyPlan, dim: int, how: How) -> None:
        super().__init__()
        self.mode, wide = how, 2 * body.width
        self.vision_encoder = Swin(swin, size)
        self.text_encoder = Body(body)
        self.vision_proj, self.text_proj = nn.Linear(swin.out, dim), nn.Linear(body.width, dim)
        self.temp = nn.Parameter(torch.tensor(0.07), requires_grad=False)
        self.itm_head = nn.Sequential(nn.Linear(body.width, wide), nn.LayerNorm(wide), nn.GELU(), nn.Linear(wide, 2))
        self.pairs_at_once = max(64, 49152 // body.width)
        self.pairwise = self.whole = how.score == "itm"
        if self.pairwise:
            self.is_cosine, self.score_min, self.score_max = False, -float("inf"), float("inf")
        self._only_what_is_trained()

    def _only_what_is_trained(self) -> None:
        if not (self.pairwise or self.mode.matching):
            for parameter in (*self.text_encoder.fusing(), *self.itm_head.parameters()):
                parameter.requires_grad_(False)
        if self.pairwise and not self.mode.contrast:
            self.vision_proj.requires_grad_(False)
            self.text_proj.requires_grad_(False)

    def decays(self, name: str) -> bool:
        """The original's rule, by name: it spares the tables of relative position biases, and not itm_head's norm."""
        return not any(part in name for part in _SPARED)

    def groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"backbone": list(self.vision_encoder.parameters()), "bert": list(self.text_encoder.parameters())}

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        if self.training and self.mode.augment:
            images = flip(random_resized_crop(images, images.shape[-1], (0.5, 1.0)))
        pixels = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, deviation = (pixels.new_tensor(x)[:, None, None] for x in (_MEAN, _DEVIATION))
        tokens = self.vision_encoder((pixels - mean) / deviation)
        return EncodedBatch(self._unit(self.vision_proj, tokens), self._kept(tokens))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        states = self.text_encoder.states(ids, present)
        kept = self._kept(states)
        return EncodedBatch(self._unit(self.text_proj, states), kept, None if kept is None else present)

    def _unit(self, projection: nn.Linear, tokens: Tensor) -> Tensor:
        return normalise(projection(tokens[:, 0]).to(self.temp.dtype))  # never of half precision

    def _kept(self, tokens: Tensor) -> Tensor | None:
        return tokens.to(self.temp.dtype) if self.pairwise or (self.training and self.mode.matching) else None

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor | Pair[Tensor]:
        """Cosines (n, m); or logits of a match: of all pairs in training, a Pair of the best pairs in eval."""
        if not self.pairwise:
            return cosine(images.vectors, texts.vectors)
        if self.training:
            return two_pass(
                self.score_pairs, self._seen(images), EncodedBatch(None, texts.local, texts.mask), self.pairs_at_once
            )
        chosen = best(cosine(images.vectors, texts.vectors), self.mode.k_test)
        return reranked(chosen, images, texts, self._seen, self.score_pairs, self.pairs_at_once)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if "seen" not in images.extra:
            images = self._seen(images)
        assert texts.local is not None
        present = texts.local.new_ones(texts.local.shape[:2], dtype=torch.bool) if texts.mask is None else texts.mask
        fused = self.text_encoder.fused(texts.local[None], present[None], images.extra["seen"])
        return self.itm_head(fused)[..., 1]  # type: ignore[no-any-return]

    def _seen(self, images: EncodedBatch) -> EncodedBatch:
        """Images as the fused layers look at them, for all captions."""
        assert images.local is not None
        return EncodedBatch(None, extra={"seen": self.text_encoder.seen(images.local)})

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        """The weighted matching loss, and for score=itm the contrastive one; None when there is neither."""
        parts: list[Tensor] = []
        logits = cosine(images.vectors, texts.vectors) / self.temp
        if self.mode.matching:
            pairs = drawn(logits.detach(), mask)
            parts.append(self.mode.matching * cross_entropy(self._judged(images, texts, pairs), pairs.label))
        if self.pairwise and self.mode.contrast:
            parts.append(contrast(logits, mask))
        return sum(parts[1:], parts[0]) if parts else None

    def _judged(self, images: EncodedBatch, texts: EncodedBatch, pairs: Drawn) -> Tensor:
        """(p, 2) logits of pairs, so many at a time that their graph is made anew for the gradient if it is large."""
        assert texts.local is not None and texts.mask is not None
        seen, states, present = self._seen(images).extra["seen"], texts.local, texts.mask
        judge = self._judged_part
        if len(pairs.label) > self.pairs_at_once:
            judge = partial(checkpoint, judge, use_reentrant=False)
        parts = zip(*(torch.split(rows, self.pairs_at_once) for rows in (pairs.images, pairs.texts)), strict=True)
        return torch.cat([judge(seen, states, present, image, text) for image, text in parts])

    def _judged_part(self, seen: Tensor, states: Tensor, present: Tensor, images: Tensor, texts: Tensor) -> Tensor:
        fused = self.text_encoder.fused(states[texts][:, None], present[texts][:, None], seen[images])
        return self.itm_head(fused[:, 0])  # type: ignore[no-any-return]
