"""CLIP of any size, read from a Hugging Face folder or begun at random, with an extra layer on each tower if wanted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokens

from .base import Encoder, EncoderSpec, require_fit
from .released.checkpoint_file import read_released
from .released.clip import configuration, configuration_of, is_clip, left_out, weights_of
from .released.transformer_config import configured, kept_parts, learnt
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class CLIP(EncoderSpec):
    """v = norm(L_v P_v h_v(image)), t = norm(L_t P_t h_t(caption)), S = v · t; h: class token, end token.

    path: Hugging Face folder (config.json, model.safetensors, tokenizer.json) to begin with. Without one the model is
    random, of `width`, `depth` layers, `heads`, patches of `patch` pixels and a joint space of `dim`, and its
    tokeniser of `subwords` parts of words is made from the training captions, `context` of them at most.
    layer: the extra layer L, dim x dim with bias after CLIP's own projection: `none`; `identity`, which begins as plain
    CLIP; `xavier`. Its place and start are our choice: the paper says one embedding layer of 768 on each tower, no
    more. The group `clip` of a recipe's rates and freeze is everything but that layer. Items are pictures of just the
    size the model takes, normalised here. logit_scale is carried along and not trained: the objective infonce learns
    the temperature. Source: Radford et al. 2021; Xuan & Chen 2023 (extra layer).
    """

    path: Path | None = None
    layer: Literal["none", "identity", "xavier"] = "none"
    width: int = 64
    depth: int = 2
    heads: int = 4
    patch: int = 8
    dim: int = 64
    context: int = 40
    subwords: int = 2000

    def __post_init__(self) -> None:
        if min(self.width, self.depth, self.heads, self.patch, self.dim) < 1 or self.context < 3:
            raise InputError("width, depth, heads, patch and dim of clip must be at least 1, context at least 3")
        if self.width % self.heads:
            raise InputError(f"width must be a multiple of heads; got {self.width} and {self.heads}")

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model, or the folder's. Raises InputError for items of another size, or a folder that does not fit."""
        if self.path is None:
            return _Towers(self._fresh(item_shape, vocabulary_size), self.layer, item_shape)
        original = read_released(self.path)
        config, found = configuration(original.options), weights_of(original)
        with torch.device("meta"):
            require_fit(_Towers(config, "none", item_shape).state_dict(), found, f"the folder {self.path}")
        model = _Towers(config, self.layer, item_shape)
        model.load_state_dict({**found, **model.head_state()})
        return model

    def rebuild(self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str]) -> Encoder:
        if "config" not in kept:
            return self.build(item_shape, vocabulary_size)
        return _Towers(kept_parts(kept, "CLIP"), self.layer, item_shape)

    def kept(self) -> Mapping[str, str]:
        return {} if self.path is None else {"config": json.dumps(configuration(read_released(self.path).options))}

    def tokens(self, captions: Sequence[str], min_count: int) -> Tokens:
        if self.path is not None:
            text = _settings(configuration(read_released(self.path).options)).text_config
            return Subwords.from_folder(self.path, max_length=text.max_position_embeddings)
        return Subwords.train(captions, self.subwords, max_length=self.context)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        if not is_clip(original):
            return None
        weights, config = weights_of(original), configuration_of(original)
        extra: Literal["none", "identity"] = "identity" if "head.img.weight" in weights else "none"
        settings = _settings(config)
        side = settings.vision_config.image_size
        with torch.device("meta"):
            require_fit(_Towers(config, extra, (3, side, side)).state_dict(), weights, f"the CLIP in {original.path}")
        return OpenedModel(
            cls(layer=extra, **_options(settings)),
            weights,
            (3, side, side),
            settings.text_config.vocab_size,
            objective=f"infonce:tau={math.exp(-learnt(weights, 'logit_scale', 0)):.9g},learn=false",
            ignored=left_out(original),
            kept={"config": json.dumps(config)},
            context=settings.text_config.max_position_embeddings,
        )

    def _fresh(self, shape: Shape, vocabulary: int) -> dict[str, Any]:
        side = shape[1] if isinstance(shape, tuple) and len(shape) == 3 else 0
        if side % self.patch:
            raise InputError(f"patch must divide the pictures' side, {side}; got {self.patch}")
        tower = {
            "hidden_size": self.width, "intermediate_size": 4 * self.width, "num_hidden_layers": self.depth,
            "num_attention_heads": self.heads,
        }  # fmt: skip
        ends = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}  # as Subwords numbers them
        text = {**tower, **ends, "vocab_size": vocabulary, "max_position_embeddings": self.context}
        vision = {**tower, "image_size": side, "patch_size": self.patch}
        return {"text_config": text, "vision_config": vision, "projection_dim": self.dim}


class _Towers(Encoder):
    def __init__(self, config: Mapping[str, Any], layer: str, shape: Shape) -> None:
        super().__init__()
        from transformers import CLIPModel

        model: Any = CLIPModel(_settings(config))
        side = model.config.vision_config.image_size
        if shape != (3, side, side):
            raise InputError(f"pictures must be (3, {side}, {side}) for this CLIP; the data set has {shape}")
        self.vision_model, self.text_model = model.vision_model, model.text_model
        self.visual_projection, self.text_projection = model.visual_projection, model.text_projection
        self.logit_scale = nn.Parameter(model.logit_scale.detach().clone(), requires_grad=False)
        width = self.visual_projection.out_features
        self.head = nn.ModuleDict({"img": _layer(width, layer), "txt": _layer(width, layer)} if layer != "none" else {})

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        pixels = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, deviation = (pixels.new_tensor(x)[:, None, None] for x in (_MEAN, _DEVIATION))
        pooled = self.vision_model(pixel_values=(pixels - mean) / deviation).pooler_output
        return EncodedBatch(normalise(self._last("img", self.visual_projection(pooled))))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        pooled = self.text_model(input_ids=ids, attention_mask=present.long()).pooler_output
        return EncodedBatch(normalise(self._last("txt", self.text_projection(pooled))))

    def groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"clip": [p for name, p in self.named_parameters() if not name.startswith("head.")]}

    def head_state(self) -> dict[str, Tensor]:
        """The extra layers, which no folder has."""
        return {name: tensor for name, tensor in self.state_dict().items() if name.startswith("head.")}

    def _last(self, side: str, projected: Tensor) -> Tensor:
        return self.head[side](projected).float() if len(self.head) else projected.float()


def _options(settings: Any) -> dict[str, Any]:
    """The options that say what an opened model is; its kept configuration is what it is built from."""
    vision = settings.vision_config
    return {
        "width": vision.hidden_size, "depth": vision.num_hidden_layers, "heads": vision.num_attention_heads,
        "patch": vision.patch_size, "dim": settings.projection_dim,
        "context": settings.text_config.max_position_embeddings,
    }  # fmt: skip


def _layer(width: int, start: str) -> nn.Linear:
    layer = nn.Linear(width, width)
    nn.init.zeros_(layer.bias)
    if start == "identity":
        nn.init.eye_(layer.weight)
    else:
        nn.init.xavier_uniform_(layer.weight)
    return layer


def _settings(config: Mapping[str, Any]) -> Any:
    """The configuration with every default filled in. Raises InputError without transformers, or for a broken one."""
    try:
        from transformers import CLIPConfig
    except ImportError as error:
        raise InputError("clip needs transformers; install lossscope[hf]") from error
    return configured(CLIPConfig, configuration(config), "CLIP")
