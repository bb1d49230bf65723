"""CLIP's files: weights under Hugging Face's, OpenAI's or open_clip's names, and the configuration they tell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from .original import Original

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
            ours[_TURNED[name]] = tensor.T.contiguous()
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
        parts = zip("qkv", torch.chunk(tensor, 3), strict=True)
        return {f"{home}.self_attn.{which}_proj.{kind}": part.contiguous() for which, part in parts}
    stem, _, kind = block["rest"].rpartition(".")
    if stem not in _INSIDE:
        raise InputError(f"names of a CLIP file must be CLIP's; got {name!r}")
    return {f"{home}.{_INSIDE[stem]}.{kind}": tensor}


def configuration_of(original: Original) -> dict[str, Any]:
    """What makes the model: the folder's configuration, or what the shapes tell."""
    if "vision_config" in original.options:
        return configuration(original.options)
    return inferred(weights_of(original), _OPENAI in original.towers[0])


def configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a folder's configuration that make the model. Raises InputError when they are not there."""
    wanted = ("text_config", "vision_config")
    if not all(isinstance(options.get(key), dict) for key in wanted):
        raise InputError(f"config.json of a CLIP folder must hold text_config and vision_config; got {sorted(options)}")
    number = options.get("projection_dim", 512)
    return {**{key: dict(options[key]) for key in wanted}, "projection_dim": number}


def is_clip(original: Original) -> bool:
    """Whether a file holds CLIP under either naming."""
    tower = original.towers[0]
    known = "vision_model.embeddings.class_embedding" in tower or _OPENAI in tower
    return len(original.towers) == 1 and known and "logit_scale" in tower


def left_out(original: Original) -> tuple[str, ...]:
    """Names that older files have beside the parameters."""
    return tuple(n for n in original.towers[0] if n.endswith(_BESIDE) or n in _SCALARS)


def weights_of(original: Original) -> dict[str, Tensor]:
    """The parameters under Hugging Face's names. Raises InputError for a name that CLIP does not have."""
    tower = original.towers[0]
    if _OPENAI in tower:
        return from_openai(tower)
    return {name: tensor for name, tensor in tower.items() if not name.endswith(_BESIDE)}


def inferred(weights: Mapping[str, Tensor], quick: bool) -> dict[str, Any]:
    """The configuration that shapes tell: heads of 64, as every published CLIP has; QuickGELU in OpenAI's files."""
    dim, width = weights["visual_projection.weight"].shape
    text_width = weights["text_projection.weight"].shape[1]
    cells, patch = weights["vision_model.embeddings.position_embedding.weight"].shape[0] - 1, _patch(weights)
    vocabulary, context = (
        weights[f"text_model.embeddings.{kind}_embedding.weight"].shape[0] for kind in ("token", "position")
    )
    shared = {"hidden_act": "quick_gelu" if quick else "gelu"}
    text = {"vocab_size": vocabulary, "max_position_embeddings": context, "eos_token_id": vocabulary - 1}
    return {
        "text_config": {**shared, **text, **_sizes(weights, "text_model", text_width)},
        "vision_config": {
            **shared, **_sizes(weights, "vision_model", width), "image_size": math.isqrt(cells) * patch,
            "patch_size": patch,
        },
        "projection_dim": dim,
    }  # fmt: skip


def _patch(weights: Mapping[str, Tensor]) -> int:
    return weights["vision_model.embeddings.patch_embedding.weight"].shape[-1]


def _sizes(weights: Mapping[str, Tensor], tower: str, width: int) -> dict[str, int]:
    layers = {name.split(".")[3] for name in weights if name.startswith(f"{tower}.encoder.layers.")}
    inner = weights[f"{tower}.encoder.layers.0.mlp.fc1.weight"].shape[0]
    return {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": len(layers),
        "num_attention_heads": max(width // 64, 1),
    }  # fmt: skip
