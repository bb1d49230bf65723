"""CLIP's files: weights under Hugging Face's, OpenAI's or open_clip's names, and the configuration they tell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..types import ReleasedFile
from .options import tensor_of
from .transformer_config import parts, size

_BESIDE = (".position_ids", "logit_bias")  # of older files

_SCALARS = ("input_resolution", "context_length", "vocab_size")  # of OpenAI's archives, not parameters
_PLAIN = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "logit_scale": "logit_scale",
}
_NORMS = {
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "ln_final": "text_model.final_layer_norm",
}
_TURNED = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
_INSIDE = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_EMBEDDED, _TABLES = "text_model.embeddings", ("token", "position")
_OPENAI = "visual.transformer.resblocks.0.attn.in_proj_weight"
_BLOCK = re.compile(r"(?P<tower>visual\.)?transformer\.resblocks\.(?P<layer>\d+)\.(?P<rest>.+)")


def from_openai(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every tensor renamed: in_proj parted into q, k, v in that order, the two projections turned.

    Raises InputError for a name that CLIP does not have.
    """
    ours: dict[str, Tensor] = {}
    for name, tensor in theirs.items():
        if name in _SCALARS:
            continue
        stem, _, kind = name.rpartition(".")
        if name in _PLAIN:
            ours[_PLAIN[name]] = tensor
        elif name in _TURNED:
            ours[_TURNED[name]] = tensor_of(theirs, name, 2).T.contiguous()
        elif stem in _NORMS:
            ours[f"{_NORMS[stem]}.{kind}"] = tensor
        else:
            ours.update(_of_block(name, tensor))
    return ours


def _of_block(name: str, tensor: Tensor) -> dict[str, Tensor]:
    block = _BLOCK.fullmatch(name)
    if block is None:
        raise InputError(f"names of a CLIP file must be CLIP's; got {name!r}")
    tower = "vision_model" if block["tower"] else "text_model"
    home = f"{tower}.encoder.layers.{block['layer']}"
    if block["rest"].startswith("attn.in_proj_"):
        kind = block["rest"].removeprefix("attn.in_proj_")
        if not tensor.ndim or not len(tensor) or len(tensor) % 3:
            raise InputError(f"{name} of the file must be of three parts of one size; got {tuple(tensor.shape)}")
        third = zip("qkv", torch.chunk(tensor, 3), strict=True)
        return {f"{home}.self_attn.{which}_proj.{kind}": part.contiguous() for which, part in third}
    stem, _, kind = block["rest"].rpartition(".")
    if stem not in _INSIDE:
        raise InputError(f"names of a CLIP file must be CLIP's; got {name!r}")
    return {f"{home}.{_INSIDE[stem]}.{kind}": tensor}


def configuration_of(original: ReleasedFile) -> dict[str, Any]:
    """What makes the model: the folder's configuration, or what the shapes tell."""
    if "vision_config" in original.options:
        return configuration(original.options)
    return inferred(weights_of(original), _OPENAI in original.towers[0])


def configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a folder's configuration that make the model. Raises InputError when they are not there, or sane."""
    return {**parts(options, "CLIP"), "projection_dim": size(options, "projection_dim", 1 << 14, 512)}


def is_clip(original: ReleasedFile) -> bool:
    """Whether a file holds CLIP under either naming."""
    tower = original.towers[0]
    known = "vision_model.embeddings.class_embedding" in tower or _OPENAI in tower
    return len(original.towers) == 1 and known and "logit_scale" in tower


def left_out(original: ReleasedFile) -> tuple[str, ...]:
    """Names that older files have beside the parameters."""
    return tuple(n for n in original.towers[0] if n.endswith(_BESIDE) or n in _SCALARS)


def weights_of(original: ReleasedFile) -> dict[str, Tensor]:
    """The parameters under Hugging Face's names. Raises InputError for a name that CLIP does not have."""
    tower = original.towers[0]
    if _OPENAI in tower:
        return from_openai(tower)
    return {name: tensor for name, tensor in tower.items() if not name.endswith(_BESIDE)}


def inferred(weights: Mapping[str, Tensor], quick: bool) -> dict[str, Any]:
    """The configuration that shapes tell: heads of 64, as every published CLIP has; QuickGELU in OpenAI's files.

    Raises InputError naming the first tensor that tells none.
    """
    dim, width = tensor_of(weights, "visual_projection.weight", 2).shape
    text_width = tensor_of(weights, "text_projection.weight", 2).shape[1]
    vocabulary, context = (len(tensor_of(weights, f"{_EMBEDDED}.{kind}_embedding.weight", 2)) for kind in _TABLES)
    shared = {"hidden_act": "quick_gelu" if quick else "gelu"}
    text = {"vocab_size": vocabulary, "max_position_embeddings": context, "eos_token_id": max(vocabulary - 1, 0)}
    image, patch = _picture(weights)
    found = {
        "text_config": {**shared, **text, **_sizes(weights, "text_model", text_width)},
        "vision_config": {
            **shared, **_sizes(weights, "vision_model", width), "image_size": image, "patch_size": patch,
        },
        "projection_dim": dim,
    }  # fmt: skip
    return configuration(found)


def _picture(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """Sides of a picture and of a patch. Raises InputError when the positions are no square of patches."""
    patch = tensor_of(weights, "vision_model.embeddings.patch_embedding.weight", 4).shape[-1]
    cells = len(tensor_of(weights, "vision_model.embeddings.position_embedding.weight", 2)) - 1
    side = math.isqrt(max(cells, 0))
    if not side or side * side != cells:
        raise InputError(f"positions of a CLIP's pictures must be a square number and one; got {cells + 1}")
    return side * patch, patch


def _sizes(weights: Mapping[str, Tensor], tower: str, width: int) -> dict[str, int]:
    layers = {name.split(".")[3] for name in weights if name.startswith(f"{tower}.encoder.layers.")}
    inner = len(tensor_of(weights, f"{tower}.encoder.layers.0.mlp.fc1.weight", 2))
    return {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": len(layers),
        "num_attention_heads": max(width // 64, 1),
    }  # fmt: skip
