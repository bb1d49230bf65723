"""CLIP of any size, from a Hugging Face folder or random weights, with an optional extra layer on each tower."""

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
from lossscope.text.tokenizer import Tokeniser

from .base import Encoder, EncoderSpec, require_fit
from .released.checkpoint_file import read_released
from .released.clip import ignored_names, is_clip, read_configuration, select_configuration, select_weights
from .released.transformer_config import build_config, parse_stored_config, read_scalar
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class CLIP(EncoderSpec):
    """v = norm(L_v P_v h_v(image)), t = norm(L_t P_t h_t(caption)), S = v · t; h: class token, end token.

    With `path` the model, its weights and tokeniser are those of the folder (config.json, model.safetensors,
    tokenizer.json), and the sizes are not used. Without it the model is random and its tokeniser is learnt from the
    training captions. Items are pictures of exactly the model's size; they are normalised here. logit_scale is stored
    but not trained: the objective infonce learns the temperature.

    The extra layers L, dim x dim with bias, follow CLIP's own projection. Their place and start are our choice: the
    paper says one embedding layer of 768 on each tower, and no more. The parameter group `clip` of a recipe's rates and
    freeze is everything but these layers.

    Source: Radford et al. 2021; Xuan & Chen 2023 (extra layer).
    """

    path: Path | None = None  # Hugging Face folder of the model
    layer: Literal["none", "identity", "xavier"] = "none"  # extra layer; identity starts as plain CLIP
    width: int = 64  # of the states of both towers
    depth: int = 2  # layers of each tower
    heads: int = 4  # attention heads of a layer
    patch: int = 8  # pixels of a patch's side
    dim: int = 64  # width of the joint space
    context: int = 40  # ids of a caption at most
    subwords: int = 2000  # size of the tokeniser that is learnt

    def __post_init__(self) -> None:
        if min(self.width, self.depth, self.heads, self.patch, self.dim) < 1 or self.context < 3:
            raise InputError("width, depth, heads, patch and dim of clip must be at least 1, context at least 3")
        if self.width % self.heads:
            raise InputError(f"width must be a multiple of heads; got {self.width} and {self.heads}")

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model, or the folder's. Raises InputError when the items or the folder do not fit."""
        if self.path is None:
            return _Towers(self._new_config(item_shape, vocabulary_size), self.layer, item_shape)
        released = read_released(self.path)
        config, weights = select_configuration(released.options), select_weights(released)
        with torch.device("meta"):
            require_fit(_Towers(config, "none", item_shape).state_dict(), weights, f"the folder {self.path}")
        model = _Towers(config, self.layer, item_shape)
        model.load_state_dict({**weights, **model.extra_layers_state()})
        return model

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        if "config" not in stored_files:
            return self.build(item_shape, vocabulary_size)
        return _Towers(parse_stored_config(stored_files, "CLIP"), self.layer, item_shape)

    def stored_files(self) -> Mapping[str, str]:
        return (
            {} if self.path is None else {"config": json.dumps(select_configuration(read_released(self.path).options))}
        )

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        if self.path is not None:
            text = _build_config(select_configuration(read_released(self.path).options)).text_config
            return Subwords.from_folder(self.path, max_length=text.max_position_embeddings)
        return Subwords.train(captions, self.subwords, max_length=self.context)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        if not is_clip(released):
            return None
        weights, config = select_weights(released), read_configuration(released)
        extra: Literal["none", "identity"] = "identity" if "head.img.weight" in weights else "none"
        settings = _build_config(config)
        side = settings.vision_config.image_size
        with torch.device("meta"):
            require_fit(_Towers(config, extra, (3, side, side)).state_dict(), weights, f"the CLIP in {released.path}")
        return OpenedModel(
            cls(layer=extra, **_size_options(settings)),
            weights,
            (3, side, side),
            settings.text_config.vocab_size,
            objective=f"infonce:tau={math.exp(-read_scalar(weights, 'logit_scale', 0)):.9g},learn=false",
            ignored=ignored_names(released),
            stored_files={"config": json.dumps(config)},
            context_length=settings.text_config.max_position_embeddings,
        )

    def _new_config(self, shape: ItemShape, vocabulary: int) -> dict[str, Any]:
        side = shape[1] if isinstance(shape, tuple) and len(shape) == 3 else 0
        if side % self.patch:
            raise InputError(f"patch must divide the pictures' side, {side}; got {self.patch}")
        shared = {
            "hidden_size": self.width, "intermediate_size": 4 * self.width, "num_hidden_layers": self.depth,
            "num_attention_heads": self.heads,
        }  # fmt: skip
        ends = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}  # as Subwords numbers them
        text = {**shared, **ends, "vocab_size": vocabulary, "max_position_embeddings": self.context}
        vision = {**shared, "image_size": side, "patch_size": self.patch}
        return {"text_config": text, "vision_config": vision, "projection_dim": self.dim}


class _Towers(Encoder):
    def __init__(self, config: Mapping[str, Any], layer: str, shape: ItemShape) -> None:
        super().__init__()
        from transformers import CLIPModel

        model: Any = CLIPModel(_build_config(config))
        side = model.config.vision_config.image_size
        if shape != (3, side, side):
            raise InputError(f"pictures must be (3, {side}, {side}) for this CLIP; the data set has {shape}")
        self.vision_model, self.text_model = model.vision_model, model.text_model
        self.visual_projection, self.text_projection = model.visual_projection, model.text_projection
        self.logit_scale = nn.Parameter(model.logit_scale.detach().clone(), requires_grad=False)
        width = self.visual_projection.out_features
        self.head = nn.ModuleDict(
            {"img": _build_layer(width, layer), "txt": _build_layer(width, layer)} if layer != "none" else {}
        )

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        pixels = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, deviation = (pixels.new_tensor(x)[:, None, None] for x in (_MEAN, _DEVIATION))
        pooled = self.vision_model(pixel_values=(pixels - mean) / deviation).pooler_output
        return EncodedBatch(normalise(self._project("img", self.visual_projection(pooled))))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        pooled = self.text_model(input_ids=ids, attention_mask=present.long()).pooler_output
        return EncodedBatch(normalise(self._project("txt", self.text_projection(pooled))))

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"clip": [p for name, p in self.named_parameters() if not name.startswith("head.")]}

    def extra_layers_state(self) -> dict[str, Tensor]:
        """Return the state of the extra layers, which no folder has."""
        return {name: tensor for name, tensor in self.state_dict().items() if name.startswith("head.")}

    def _project(self, tower: str, projected: Tensor) -> Tensor:
        return self.head[tower](projected).float() if len(self.head) else projected.float()


def _size_options(settings: Any) -> dict[str, Any]:
    """Return the options that describe an opened model; it is built from its stored configuration."""
    vision = settings.vision_config
    return {
        "width": vision.hidden_size, "depth": vision.num_hidden_layers, "heads": vision.num_attention_heads,
        "patch": vision.patch_size, "dim": settings.projection_dim,
        "context": settings.text_config.max_position_embeddings,
    }  # fmt: skip


def _build_layer(width: int, start: str) -> nn.Linear:
    """Return an extra layer."""
    layer = nn.Linear(width, width)
    nn.init.zeros_(layer.bias)
    if start == "identity":
        nn.init.eye_(layer.weight)
    else:
        nn.init.xavier_uniform_(layer.weight)
    return layer


def _build_config(config: Mapping[str, Any]) -> Any:
    """Return the configuration with all defaults. Raises InputError without transformers, or for an invalid one."""
    try:
        from transformers import CLIPConfig
    except ImportError as error:
        raise InputError("clip needs transformers; install lossscope[hf]") from error
    return build_config(CLIPConfig, select_configuration(config), "CLIP")
