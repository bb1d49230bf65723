"""CLIP's files: weights under the names of Hugging Face, OpenAI or open_clip, and their configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..types import ReleasedFile
from .options import require_tensor
from .transformer_config import require_size, select_configs

_IGNORED_ENDINGS = (".position_ids", "logit_bias")  # of older files

_SCALARS = ("input_resolution", "context_length", "vocab_size")  # of OpenAI's archives, not parameters
_PLAIN_NAMES = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "logit_scale": "logit_scale",
}
_NORM_NAMES = {
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "ln_final": "text_model.final_layer_norm",
}
_TRANSPOSED_NAMES = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
_BLOCK_NAMES = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_EMBEDDED, _TABLES = "text_model.embeddings", ("token", "position")
_OPENAI = "visual.transformer.resblocks.0.attn.in_proj_weight"
_BLOCK = re.compile(r"(?P<tower>visual\.)?transformer\.resblocks\.(?P<layer>\d+)\.(?P<rest>.+)")


def rename_openai(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all tensors under Hugging Face's names: in_proj split into q, k, v, the two projections transposed.

    Raises InputError for a name that CLIP does not have.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if name in _SCALARS:
            continue
        stem, _, kind = name.rpartition(".")
        if name in _PLAIN_NAMES:
            renamed[_PLAIN_NAMES[name]] = tensor
        elif name in _TRANSPOSED_NAMES:
            renamed[_TRANSPOSED_NAMES[name]] = require_tensor(weights, name, 2).T.contiguous()
        elif stem in _NORM_NAMES:
            renamed[f"{_NORM_NAMES[stem]}.{kind}"] = tensor
        else:
            renamed.update(_rename_block(name, tensor))
    return renamed


def _rename_block(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Return a tensor of a transformer block under its new names."""
    block = _BLOCK.fullmatch(name)
    if block is None:
        raise InputError(f"names of a CLIP file must be CLIP's; got {name!r}")
    tower = "vision_model" if block["tower"] else "text_model"
    layer = f"{tower}.encoder.layers.{block['layer']}"
    if block["rest"].startswith("attn.in_proj_"):
        kind = block["rest"].removeprefix("attn.in_proj_")
        if not tensor.ndim or not len(tensor) or len(tensor) % 3:
            raise InputError(f"{name} of the file must be of three parts of one size; got {tuple(tensor.shape)}")
        third = zip("qkv", torch.chunk(tensor, 3), strict=True)
        return {f"{layer}.self_attn.{projection}_proj.{kind}": part.contiguous() for projection, part in third}
    stem, _, kind = block["rest"].rpartition(".")
    if stem not in _BLOCK_NAMES:
        raise InputError(f"names of a CLIP file must be CLIP's; got {name!r}")
    return {f"{layer}.{_BLOCK_NAMES[stem]}.{kind}": tensor}


def read_configuration(released: ReleasedFile) -> dict[str, Any]:
    """Return the configuration of the folder, or the one that follows from the shapes of the weights."""
    if "vision_config" in released.options:
        return select_configuration(released.options)
    return infer_configuration(select_weights(released), _OPENAI in released.towers[0])


def select_configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a configuration that define the model. Raises InputError when they are missing or invalid."""
    return {**select_configs(options, "CLIP"), "projection_dim": require_size(options, "projection_dim", 1 << 14, 512)}


def is_clip(released: ReleasedFile) -> bool:
    """Return whether a file holds CLIP under either naming."""
    tower = released.towers[0]
    known = "vision_model.embeddings.class_embedding" in tower or _OPENAI in tower
    return len(released.towers) == 1 and known and "logit_scale" in tower


def ignored_names(released: ReleasedFile) -> tuple[str, ...]:
    """Return names that older files have beside the parameters."""
    return tuple(n for n in released.towers[0] if n.endswith(_IGNORED_ENDINGS) or n in _SCALARS)


def select_weights(released: ReleasedFile) -> dict[str, Tensor]:
    """Return the parameters under Hugging Face's names. Raises InputError for a name that CLIP does not have."""
    tower = released.towers[0]
    if _OPENAI in tower:
        return rename_openai(tower)
    return {name: tensor for name, tensor in tower.items() if not name.endswith(_IGNORED_ENDINGS)}


def infer_configuration(weights: Mapping[str, Tensor], quick: bool) -> dict[str, Any]:
    """Return the configuration that follows from the shapes: heads of 64, as in all published CLIPs.

    Raises InputError that names the first tensor whose shape does not fit.

    Args:
        weights: under Hugging Face's names.
        quick: whether the activation is QuickGELU, as in OpenAI's files.
    """
    dim, width = require_tensor(weights, "visual_projection.weight", 2).shape
    text_width = require_tensor(weights, "text_projection.weight", 2).shape[1]
    vocabulary, context = (len(require_tensor(weights, f"{_EMBEDDED}.{kind}_embedding.weight", 2)) for kind in _TABLES)
    shared = {"hidden_act": "quick_gelu" if quick else "gelu"}
    text = {"vocab_size": vocabulary, "max_position_embeddings": context, "eos_token_id": max(vocabulary - 1, 0)}
    image, patch = _infer_picture(weights)
    config = {
        "text_config": {**shared, **text, **_infer_sizes(weights, "text_model", text_width)},
        "vision_config": {
            **shared, **_infer_sizes(weights, "vision_model", width), "image_size": image, "patch_size": patch,
        },
        "projection_dim": dim,
    }  # fmt: skip
    return select_configuration(config)


def _infer_picture(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """Return the sides of a picture and of a patch. Raises InputError when the positions are no square of patches."""
    patch = require_tensor(weights, "vision_model.embeddings.patch_embedding.weight", 4).shape[-1]
    cells = len(require_tensor(weights, "vision_model.embeddings.position_embedding.weight", 2)) - 1
    side = math.isqrt(max(cells, 0))
    if not side or side * side != cells:
        raise InputError(f"positions of a CLIP's pictures must be a square number and one; got {cells + 1}")
    return side * patch, patch


def _infer_sizes(weights: Mapping[str, Tensor], tower: str, width: int) -> dict[str, int]:
    """Return the sizes of one tower."""
    layers = {name.split(".")[3] for name in weights if name.startswith(f"{tower}.encoder.layers.")}
    inner = len(require_tensor(weights, f"{tower}.encoder.layers.0.mlp.fc1.weight", 2))
    return {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": len(layers),
        "num_attention_heads": max(width // 64, 1),
    }  # fmt: skip
