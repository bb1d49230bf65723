"""X-VLM's model: the two vectors of a picture and a caption, the logit of a pair, and the losses beside S."""

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
from .layers.chunked_scores import score_in_chunks
from .layers.cross_encoder import CrossEncoder, CrossEncoderConfig
from .layers.image_augmentation import random_flip, random_resized_crop
from .layers.image_text_matching import MatchingPairs, best_pairs, contrastive_loss, rerank, sample_pairs
from .layers.swin import Swin, SwinConfig
from .types import EncodedBatch, Items

_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class ModelOptions:
    """What S is, and which losses the model adds."""

    score: Literal["itc", "itm"]  # S: itc, cosines, or itm, logits of a match
    k_test: int  # candidates of a query that itm scores in eval
    matching: float  # weight of the matching loss, 0 for none
    contrast: bool  # whether itm adds the contrastive loss
    augment: bool  # whether training augments pictures


_NO_DECAY = ("bias", "LayerNorm.weight", "norm.weight", "norm1.weight", "norm2.weight")


class XvlmModel(Encoder):
    """v, t and the fused [CLS] of a pair; vision_encoder, text_encoder, vision_proj, text_proj, temp, itm_head."""

    def __init__(
        self, swin_config: SwinConfig, size: int, text_config: CrossEncoderConfig, dim: int, options: ModelOptions
    ) -> None:
        super().__init__()
        self.options, hidden = options, 2 * text_config.width
        self.vision_encoder = Swin(swin_config, size)
        self.text_encoder = CrossEncoder(text_config)
        self.vision_proj, self.text_proj = nn.Linear(swin_config.out, dim), nn.Linear(text_config.width, dim)
        self.temp = nn.Parameter(torch.tensor(0.07), requires_grad=False)
        self.itm_head = nn.Sequential(
            nn.Linear(text_config.width, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, 2)
        )
        self.pairs_per_chunk = max(64, 49152 // text_config.width)
        self.pairwise = self.needs_full_matrix = options.score == "itm"
        if self.pairwise:
            self.is_cosine, self.score_min, self.score_max = False, -float("inf"), float("inf")
        self._freeze_unused()

    def _freeze_unused(self) -> None:
        """Freeze the parameters that no loss reaches."""
        if not (self.pairwise or self.options.matching):
            for parameter in (*self.text_encoder.fused_parameters(), *self.itm_head.parameters()):
                parameter.requires_grad_(False)
        if self.pairwise and not self.options.contrast:
            self.vision_proj.requires_grad_(False)
            self.text_proj.requires_grad_(False)

    def uses_weight_decay(self, name: str) -> bool:
        """Return the original's rule, by name: not for tables of relative position biases, but for itm_head's norm."""
        return not any(part in name for part in _NO_DECAY)

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"backbone": list(self.vision_encoder.parameters()), "bert": list(self.text_encoder.parameters())}

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        if self.training and self.options.augment:
            images = random_flip(random_resized_crop(images, images.shape[-1], (0.5, 1.0)))
        pixels = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, deviation = (pixels.new_tensor(x)[:, None, None] for x in (_MEAN, _DEVIATION))
        tokens = self.vision_encoder((pixels - mean) / deviation)
        return EncodedBatch(self._unit(self.vision_proj, tokens), self._local_tokens(tokens))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        states = self.text_encoder.encode_texts(ids, present)
        local = self._local_tokens(states)
        return EncodedBatch(self._unit(self.text_proj, states), local, None if local is None else present)

    def _unit(self, projection: nn.Linear, tokens: Tensor) -> Tensor:
        return normalise(projection(tokens[:, 0]).to(self.temp.dtype))  # never of half precision

    def _local_tokens(self, tokens: Tensor) -> Tensor | None:
        return tokens.to(self.temp.dtype) if self.pairwise or (self.training and self.options.matching) else None

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor | Pair[Tensor]:
        """Return cosines (n, m) or logits of a match: of all pairs in training, a Pair of the best pairs in eval."""
        if not self.pairwise:
            return cosine(images.vectors, texts.vectors)
        if self.training:
            return score_in_chunks(
                self.score_pairs,
                self._project_images(images),
                EncodedBatch(None, texts.local, texts.mask),
                self.pairs_per_chunk,
            )
        chosen = best_pairs(cosine(images.vectors, texts.vectors), self.options.k_test)
        return rerank(chosen, images, texts, self._project_images, self.score_pairs, self.pairs_per_chunk)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        if "keys_values" not in images.extra:
            images = self._project_images(images)
        assert texts.local is not None
        present = texts.local.new_ones(texts.local.shape[:2], dtype=torch.bool) if texts.mask is None else texts.mask
        fused = self.text_encoder.fuse(texts.local[None], present[None], images.extra["keys_values"])
        return self.itm_head(fused)[..., 1]  # type: ignore[no-any-return]

    def _project_images(self, images: EncodedBatch) -> EncodedBatch:
        """Return the images as keys and values of the fused layers, for all captions."""
        assert images.local is not None
        return EncodedBatch(None, extra={"keys_values": self.text_encoder.project_images(images.local)})

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        """Return the weighted matching loss plus, for score=itm, the contrastive one; None when there is neither."""
        parts: list[Tensor] = []
        logits = cosine(images.vectors, texts.vectors) / self.temp
        if self.options.matching:
            pairs = sample_pairs(logits.detach(), mask)
            parts.append(self.options.matching * cross_entropy(self._match_logits(images, texts, pairs), pairs.label))
        if self.pairwise and self.options.contrast:
            parts.append(contrastive_loss(logits, mask))
        return sum(parts[1:], parts[0]) if parts else None

    def _match_logits(self, images: EncodedBatch, texts: EncodedBatch, pairs: MatchingPairs) -> Tensor:
        """Return (p, 2) logits of pairs, a chunk at a time; with several chunks the gradient recomputes the graph."""
        assert texts.local is not None and texts.mask is not None
        keys_values, states, present = self._project_images(images).extra["keys_values"], texts.local, texts.mask
        match = self._match_logits_of_chunk
        if len(pairs.label) > self.pairs_per_chunk:
            match = partial(checkpoint, match, use_reentrant=False)
        parts = zip(*(torch.split(rows, self.pairs_per_chunk) for rows in (pairs.images, pairs.texts)), strict=True)
        return torch.cat([match(keys_values, states, present, image, text) for image, text in parts])

    def _match_logits_of_chunk(
        self, keys_values: Tensor, states: Tensor, present: Tensor, images: Tensor, texts: Tensor
    ) -> Tensor:
        fused = self.text_encoder.fuse(states[texts][:, None], present[texts][:, None], keys_values[images])
        return self.itm_head(fused[:, 0])  # type: ignore[no-any-return]
