"""CLIP of any size, from a Hugging Face folder or random weights, with an optional extra layer on each tower."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.text.clip_tokeniser import fit_to_clip
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokeniser

from ._clip_model import ClipModel, build_clip_config
from .base import Encoder, EncoderSpec, require_fit
from .released.clip import ignored_names, is_clip, select_weights
from .released.clip_config import read_configuration
from .released.clip_inputs import assumptions, cleaning_of, read_reading
from .released.clip_sizes import described_options, require_choices, require_stored
from .released.containers import read_container
from .released.image_processor import named_normalisation
from .released.known_options.clip import OPTIONS, REFUSED_OPTIONS
from .released.option_table import OptionTable
from .released.transformer_config import parse_stored_config, read_scalar
from .types import ItemShape, OpenedModel, ReleasedFile


@dataclass(frozen=True)
class CLIP(EncoderSpec):
    """v = norm(L_v P_v h_v(image)), t = norm(L_t P_t h_t(caption)), S = v · t; h: class token, end token.

    With `path` the model, its weights and tokeniser are those of the folder (config.json, model.safetensors,
    tokenizer.json), and the sizes are not used. Without it the model is random and its tokeniser is learnt from the
    training captions. Items are pictures of exactly the model's size; they are normalised here. logit_scale is stored
    but not trained: the objective infonce learns the temperature.

    A released file whose configuration does not say them is opened with activation, heads and text_heads, or with the
    `model` that has these, and with mean_std: no tensor shows them.

    The extra layers L, dim x dim with bias, follow CLIP's own projection. Their place and start are our choice: the
    paper says one embedding layer of 768 on each tower, and no more. The parameter group `clip` of a recipe's rates and
    freeze is everything but these layers.

    Source: Radford et al. 2021; Li et al. 2022, B.1.2 (extra layer).
    """

    path: Path | None = None  # Hugging Face folder of the model
    layer: Literal["none", "identity", "xavier"] = "none"  # extra layer; identity starts as plain CLIP
    width: int = 64  # of the states of both towers
    depth: int = 2  # layers of each tower
    heads: int = 4  # attention heads of a layer, of the image tower where text_heads is given
    patch: int = 8  # pixels of a patch's side
    dim: int = 64  # width of the joint space
    context: int = 40  # ids of a caption at most
    subwords: int = 2000  # size of the tokeniser that is learnt
    text_heads: int | None = None  # attention heads of the text tower; none: heads
    activation: Literal["gelu", "quick_gelu"] | None = None  # none: as configured, quick_gelu when new
    model: str | None = None  # open_clip's name of the model in a released file, as ViT-H-14
    mean_std: Literal["openai", "imagenet", "inception"] | None = (
        None  # of pixels; none: as configured, openai when new
    )

    released_options: ClassVar[OptionTable] = OPTIONS

    def __post_init__(self) -> None:
        if min(self.width, self.depth, self.heads, self.patch, self.dim) < 1 or self.context < 3:
            raise InputError("width, depth, heads, patch and dim of clip must be at least 1, context at least 3")
        for name, heads in (("heads", self.heads), ("text_heads", self.text_heads or self.heads)):
            if heads < 1 or (name == "heads" and self.width % heads):
                raise InputError(f"width must be a multiple of {name}; got {self.width} and {heads}")

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model, or the folder's. Raises InputError when the items or the folder do not fit."""
        if self.path is None and self.model is not None:
            raise InputError(f"model is for released files, which state no heads; got {self.model} for a new CLIP")
        if self.path is None:
            return ClipModel(self._new_config(item_shape, vocabulary_size), self.layer, item_shape)
        _, config, weights = self._read_folder(self.path)
        with torch.device("meta"):
            require_fit(ClipModel(config, "none", item_shape).state_dict(), weights, f"the folder {self.path}")
        model = ClipModel(config, self.layer, item_shape)
        model.load_state_dict({**weights, **model.extra_layers_state()})
        return model

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        if "config" not in stored_files:
            return self.build(item_shape, vocabulary_size)
        config = parse_stored_config(stored_files, "CLIP")
        require_stored(self, config, build_clip_config(config), sizes=self.path is None)
        return ClipModel(config, self.layer, item_shape)

    def stored_files(self) -> Mapping[str, str]:
        return {} if self.path is None else {"config": json.dumps(self._read_folder(self.path)[1])}

    def reading(self) -> Mapping[str, str]:
        if self.path is None:
            return {}
        released, config, _ = self._read_folder(self.path)
        return read_reading(released, build_clip_config(config).vision_config.image_size)

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        if self.path is not None:
            released, config, _ = self._read_folder(self.path)
            context = build_clip_config(config).text_config.max_position_embeddings
            parts, cleaning = Subwords.from_folder(self.path, context), cleaning_of(released)
            return fit_to_clip(parts, cleaning, context) if cleaning else parts
        return Subwords.train(captions, self.subwords, max_length=self.context)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        if not is_clip(released):
            return None
        if "model_cfg" in released.options:  # it can have tensors of other names
            REFUSED_OPTIONS.require_known(released.options, (), released.path)
        weights = select_weights(released)
        config = read_configuration(released, weights)
        extra: Literal["none", "identity"] = "identity" if "head.img.weight" in weights else "none"
        settings = build_clip_config(config)
        require_choices(released, config, settings)
        side = settings.vision_config.image_size
        with torch.device("meta"):
            require_fit(ClipModel(config, extra, (3, side, side)).state_dict(), weights, f"the CLIP in {released.path}")
        return OpenedModel(
            cls(layer=extra, **described_options(settings)),
            weights,
            (3, side, side),
            settings.text_config.vocab_size,
            objective=_name_objective(released, weights),
            ignored=ignored_names(released),
            notices=assumptions(released, weights),
            stored_files={"config": json.dumps(config)},
            context_length=settings.text_config.max_position_embeddings,
            reading=read_reading(released, side),
            cleaning=cleaning_of(released),
        )

    def _read_folder(self, path: Path) -> tuple[ReleasedFile, dict[str, Any], dict[str, Tensor]]:
        """Return a folder, with its configuration and weights. Raises InputError for options that are not done here."""
        released = read_container(path)
        weights = select_weights(released)
        config = read_configuration(released, weights)
        OPTIONS.require_known(released.options, (), path)
        require_stored(self, config, build_clip_config(config), sizes=True)
        return released, config, weights

    def _new_config(self, shape: ItemShape, vocabulary: int) -> dict[str, Any]:
        side = shape[1] if isinstance(shape, tuple) and len(shape) == 3 else 0
        if side % self.patch:
            raise InputError(f"patch must divide the pictures' side, {side}; got {self.patch}")
        shared: dict[str, Any] = {
            "hidden_size": self.width, "intermediate_size": 4 * self.width, "num_hidden_layers": self.depth,
            "num_attention_heads": self.heads, "hidden_act": self.activation or "quick_gelu",
        }  # fmt: skip
        ends = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}  # as Subwords numbers them
        text = {**shared, **ends, "vocab_size": vocabulary, "max_position_embeddings": self.context}
        text["num_attention_heads"] = self.text_heads or self.heads
        pixels = {} if self.mean_std is None else named_normalisation(self.mean_std)
        vision = {**shared, "image_size": side, "patch_size": self.patch}
        return {"text_config": text, "vision_config": vision, "projection_dim": self.dim, **pixels}


def _name_objective(released: ReleasedFile, weights: Mapping[str, Tensor]) -> str:
    """Return the spec of the loss at the scale in the file: the sigmoid loss where it has a bias too."""
    scale = read_scalar(weights, "logit_scale", 0)
    if "logit_bias" in released.towers[0]:
        bias = read_scalar(released.towers[0], "logit_bias", 0)
        return f"siglip:scale={math.exp(scale):.9g},bias={bias:.9g},learn=false"
    return f"infonce:tau={math.exp(-scale):.9g},learn=false"
