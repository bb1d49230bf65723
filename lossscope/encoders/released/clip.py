"""CLIP's files: weights under the names of Hugging Face, OpenAI or open_clip."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..types import ReleasedFile
from .clip_statements import OPENAI_SCALARS
from .open_clip import CUSTOM_TEXT, require_plain_towers
from .options import require_tensor

_IGNORED_ENDINGS = (".position_ids", "logit_bias")  # of older files

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
_IMAGE_TOWER = "visual."  # before the names of the image tower in the files of OpenAI and open_clip
_BLOCK = re.compile(r"(?P<tower>visual\.)?transformer\.resblocks\.(?P<layer>\d+)\.(?P<rest>.+)")


def rename_openai(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all tensors under Hugging Face's names: in_proj split into q, k, v, the two projections transposed.

    Raises InputError for a name that CLIP does not have.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if name in OPENAI_SCALARS:
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


def is_clip(released: ReleasedFile) -> bool:
    """Return whether a file holds CLIP under either naming, be it one that is not opened here."""
    tower = released.towers[0]
    known = "vision_model.embeddings.class_embedding" in tower or has_openai_names(released)
    return len(released.towers) == 1 and known and "logit_scale" in tower


def has_openai_names(released: ReleasedFile) -> bool:
    """Return whether the names of a file are those of OpenAI and open_clip."""
    return any(name.startswith(_IMAGE_TOWER) for name in released.towers[0])


def ignored_names(released: ReleasedFile) -> tuple[str, ...]:
    """Return names that older files have beside the parameters."""
    return tuple(n for n in released.towers[0] if n.endswith(_IGNORED_ENDINGS) or n in OPENAI_SCALARS)


def select_weights(released: ReleasedFile) -> dict[str, Tensor]:
    """Return the parameters under Hugging Face's names.

    Raises InputError for a name that CLIP does not have, and for towers that are not built here.
    """
    tower = {name: tensor for name, tensor in released.towers[0].items() if not name.endswith(_IGNORED_ENDINGS)}
    if not has_openai_names(released):
        return tower
    require_plain_towers(tower, released.path)
    return rename_openai({name.removeprefix(CUSTOM_TEXT): tensor for name, tensor in tower.items()})
